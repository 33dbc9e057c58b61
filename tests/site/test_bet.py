"""Test bets: they are placed, changed, kept, refused and looked at again.

Two bets of lab 2 and 3 are drawn on a page of their own, which answers one question after the other; the rest is asked on the built labs.
The pages run without a kernel, some of them from files.
"""

from collections.abc import Callable
from typing import Any

import pytest
from accessibility import violations, without_others
from browser import reload, reload_after
from playwright.sync_api import Locator, Page, expect
from visits import as_new, in_order

from hybridlab.widgets import Bet

LAB2 = "labs/lab02_one_f_one_b.html"
LAB3 = "labs/lab03_bubbles_and_memory.html"
NAME = "lab02.sooner"
KEY = f"hybridlab.bet.{NAME}"
PLACED = "!document.querySelector('.hybridlab-bet form').checkVisibility()"  # the first bet of the page
REFUSING = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('refused', 'SecurityError'); } });"
KEPT = "() => { try { return { ...localStorage }; } catch (refusal) { return String(refusal); } }"
MOUNT = """async ([code, state]) => {
  const { default: { render } } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const listeners = [];
  const model = {
    saved: 0,
    listeners,
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      for (const [event, listener] of [...listeners]) if (event === `change:${name}`) listener();
    },
    on: (event, listener) => listeners.push([event, listener]),
    off: (event, listener) => listeners.splice(listeners.findIndex((each) => each[0] === event && each[1] === listener), 1),
    save_changes: () => model.saved++,
  };
  const el = document.createElement("div");
  el.id = "mounted";
  document.getElementById("mounted")?.remove();
  document.querySelector("main, body").append(el); // below the page's own
  window.mounted = { model, stop: render({ model, el }) };
}"""  # a view with its own model, as in a notebook


def mount(page: Page, state: dict[str, Any]) -> Locator:
    """Draw the view of a widget with this state on the page, in addition to the page's own views."""
    page.evaluate(MOUNT, [Bet._esm, state])
    return page.locator("#mounted")


def question(page: Page) -> Locator:
    return page.locator(".hybridlab-bet").first


def look_back(page: Page) -> Locator:
    return page.locator(".hybridlab-revealed").first


def place(view: Locator, choice: str) -> None:
    view.get_by_label(choice, exact=True).check()
    view.get_by_role("button", name="Place the bet").click()


def says(view: Locator, text: str) -> None:
    """Wait until the view shows the text visibly."""
    try:
        expect(view.get_by_text(text, exact=True).and_(view.locator(":not(.unseen)"))).to_be_visible()
    except AssertionError as error:
        error.add_note(f"The view shows {view.inner_text()!r}; the browser keeps {str(view.evaluate(KEPT))[:300]}.")
        raise


def a_bet_is_placed_with_the_keyboard_alone(page: Page) -> None:
    bet = question(page)
    bet.evaluate("""view => {
      view.before(document.createElement("button")); // whatever a lab has above it
      view.previousSibling.focus();
    }""")
    page.keyboard.press("Tab")
    expect(bet.get_by_label("GPipe")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(bet.get_by_label("1F1B")).to_be_checked()
    page.keyboard.press("Tab")
    expect(bet.get_by_role("button", name="Place the bet")).to_be_focused()
    page.keyboard.press("Enter")
    says(bet, "Your bet: 1F1B")
    expect(bet.get_by_role("button", name="Change the bet")).to_be_focused()
    expect(bet.locator("[aria-live]")).to_have_text("Bet placed: 1F1B.")


@pytest.mark.parametrize("way", ["files", "server"])
def test_a_bet_survives_a_reload_and_stands_beside_the_answer(new_page: Any, request: Any, way: str) -> None:
    page = new_page(request.getfixturevalue(way) + LAB2)

    def stands() -> None:
        says(question(page), "Your bet: 1F1B")
        expect(look_back(page).locator("dt")).to_have_text(["Your bet", "The answer"])
        expect(look_back(page).locator("dd")).to_have_text(["1F1B", "neither"])
        says(look_back(page), "Your bet was wrong.")

    def bets() -> None:
        if not page.evaluate(PLACED):
            place(question(page), "1F1B")
        stands()

    reload_after(page, bets, PLACED)
    stands()
    assert page.evaluate("key => localStorage.getItem(key)", KEY) == '"1F1B"'
    expect(question(page).locator("[aria-live]")).to_be_empty()  # an answer that was already there is not announced


def a_bet_can_be_changed(page: Page) -> None:
    bet = question(page)
    place(bet, "GPipe")
    bet.get_by_role("button", name="Change the bet").press("Enter")
    expect(bet.get_by_label("GPipe")).to_be_focused()
    expect(bet.get_by_label("GPipe")).to_be_checked()
    expect(look_back(page).locator("dd").first).to_have_text("GPipe")  # this bet counts until another one is placed
    place(bet, "neither")
    says(bet, "Your bet: neither")
    says(look_back(page), "Your bet was right.")
    bet.get_by_role("button", name="Change the bet").click()
    bet.get_by_role("button", name="Place the bet").click()
    says(bet, "Your bet: neither")


def without_a_choice_nothing_is_placed(page: Page) -> None:
    bet = question(page)
    bet.get_by_role("button", name="Place the bet").click()
    expect(bet.get_by_role("alert")).to_have_text("Choose one of the answers first.")
    expect(bet.get_by_label("GPipe")).to_be_focused()
    expect(bet.get_by_label("GPipe")).to_have_accessible_description("Choose one of the answers first.")
    bet.get_by_label("GPipe").check()
    expect(bet.get_by_role("alert")).to_be_empty()


def without_a_bet_the_answer_is_folded(page: Page) -> None:
    back = look_back(page)
    says(back, "You have not placed a bet on this question yet.")
    expect(back.locator("dl")).to_be_hidden()
    back.get_by_role("button", name="Go to the question").press("Enter")
    expect(question(page).get_by_label("GPipe")).to_be_focused()
    expect(question(page).get_by_label("GPipe")).to_be_in_viewport()
    back.get_by_role("button", name="Show the answer without betting").press("Enter")
    expect(back.locator("dt")).to_have_text(["The answer"])
    expect(back.locator("dd")).to_have_text(["neither"])
    expect(back.locator(".answer")).to_be_focused()
    place(question(page), "neither")
    says(back, "Your bet was right.")


def a_look_back_whose_question_is_not_there_says_so(page: Page) -> None:
    page.evaluate("document.querySelector('.hybridlab-bet').remove()")
    look_back(page).get_by_role("button", name="Go to the question").click()
    expect(look_back(page).get_by_role("status")).to_contain_text("Scroll up to it")


NUMBERS = [  # written, placed, judged
    ("10", "10 microbatches", "Your bet was too low by 17."),
    (" 27.0 ", "27 microbatches", "Your bet was exactly right."),
    ("1", "1 microbatch", "Your bet was too low by 26."),
    ("27,5", "27.5 microbatches", "Your bet was too high by 0.5."),
    ("-3 microbatches", "-3 microbatches", "Your bet was too low by 30."),
    ("1e3", "1000 microbatches", "Your bet was too high by 973."),
]


def a_number_can_be_placed(page: Page) -> None:
    bet = question(page)
    for written, placed, judged in NUMBERS:
        bet.get_by_label("Your bet, microbatches").fill(written)
        page.keyboard.press("Enter")
        says(bet, f"Your bet: {placed}")
        expect(look_back(page).locator("dd")).to_have_text([placed, "27 microbatches"])
        says(look_back(page), judged)
        bet.get_by_role("button", name="Change the bet").click()
        expect(bet.get_by_label("Your bet, microbatches")).to_be_focused()


NO_NUMBERS = [  # written, sentence
    ("", "Write a number first."),
    ("many", '"many" is not a number. Write one in digits, such as 12 or 0.5.'),
    ("1/2", '"1/2" is not a number.'),
    ("1,000", "Write 1,000 without a comma between thousands: 1000."),
    ("1e999", "1e999 is too large. Write a smaller number."),
    ("NaN", '"NaN" is not a number.'),
    ("0x10", '"0x10" is not a number.'),
]


def what_is_no_number_is_not_placed(page: Page) -> None:
    bet = question(page)
    number = bet.get_by_label("Your bet, microbatches")
    for written, sentence in NO_NUMBERS:
        number.fill(written)
        number.press("Enter")
        expect(bet.get_by_role("alert")).to_contain_text(sentence)
        expect(number).to_be_focused()
        expect(number).to_have_attribute("aria-invalid", "true")
        says(look_back(page), "You have not placed a bet on this question yet.")
    number.fill("12")
    expect(bet.get_by_role("alert")).to_be_empty()
    page.keyboard.press("Enter")
    says(bet, "Your bet: 12 microbatches")


def test_a_browser_that_stores_nothing_is_told_and_goes_on(fresh_page: Any, files: str, faults: list[str]) -> None:
    page = fresh_page(files + "index.html")
    page.context.add_init_script(REFUSING)
    page.goto(files + LAB2)
    bet = question(page)
    place(bet, "neither")
    says(bet, "Your bet: neither")
    says(bet, "This browser does not store anything for this page: your bet will not survive a reload.")
    says(look_back(page), "Your bet was right.")
    later = mount(page, Bet(NAME, "Which?", choices=("GPipe", "1F1B", "neither")).get_state())
    says(later, "Your bet: neither")  # a view that is drawn later gets the new value, too
    reload(page)
    says(look_back(page), "You have not placed a bet on this question yet.")
    faults.clear()  # the theme's scripts do not catch errors when they store something


def a_browser_that_stores_says_nothing_of_it(page: Page) -> None:
    place(question(page), "neither")
    expect(question(page).locator(".note")).to_be_hidden()


JUNK = ["no JSON", '"3F1B"', "27", '{"answer": "GPipe"}', '["GPipe"]', "null", "", f'"{"GPipe" * 10**5}"']


def junk_in_the_store_is_no_bet(page: Page) -> None:
    for junk in JUNK:
        page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, junk])
        reload(page)
        expect(question(page).get_by_role("button", name="Place the bet")).to_be_visible()
        says(look_back(page), "You have not placed a bet on this question yet.")
    place(question(page), "GPipe")
    reload(page)
    says(question(page), "Your bet: GPipe")


def test_bets_are_told_apart_by_their_names(new_page: Any, files: str) -> None:
    page = new_page(files + LAB3)
    page.locator("details.fold").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")  # the third is in an optional part
    first, second, third = (page.locator(".hybridlab-bet").nth(place) for place in range(3))
    place(second, "the same")
    third.get_by_label("Your bet, %").fill("23%")
    page.keyboard.press("Enter")
    says(second, "Your bet: the same")
    says(third, "Your bet: 23 %")
    expect(first.get_by_role("button", name="Place the bet")).to_be_visible()
    judged = [page.locator(".hybridlab-revealed").nth(place) for place in range(3)]
    says(judged[0], "You have not placed a bet on this question yet.")
    says(judged[1], "Your bet was right.")
    says(judged[2], "Your bet was exactly right.")


def two_views_of_one_bet_agree(page: Page) -> None:
    other = mount(page, Bet(NAME, "Which of the two?", choices=("GPipe", "1F1B", "neither")).get_state())
    place(question(page), "GPipe")
    says(other, "Your bet: GPipe")
    other.get_by_role("button", name="Change the bet").click()
    place(other, "neither")
    says(question(page), "Your bet: neither")
    says(look_back(page), "Your bet was right.")


def test_another_tab_follows(new_page: Any, server: str) -> None:
    page = new_page(server + LAB2)
    other = page.context.new_page()
    other.goto(server + LAB2)
    place(question(page), "GPipe")
    says(question(other), "Your bet: GPipe")
    page.evaluate("localStorage.clear()")
    expect(question(other).get_by_role("button", name="Place the bet")).to_be_visible()


def a_kernel_hears_of_the_bet_and_can_set_it(page: Page) -> None:
    view = mount(page, Bet("a.b", "How many?", unit="ms").get_state())
    view.get_by_label("Your bet, ms").fill("2,5")
    page.keyboard.press("Enter")
    assert page.evaluate("[mounted.model.get('answer'), mounted.model.saved]") == [2.5, 1]
    page.evaluate("mounted.model.set('answer', 3)")
    says(view, "Your bet: 3 ms")
    assert page.evaluate("localStorage.getItem('hybridlab.bet.a.b')") == "3"
    page.evaluate("mounted.model.set('answer', null)")
    expect(view.get_by_label("Your bet, ms")).to_be_empty()
    assert page.evaluate("localStorage.getItem('hybridlab.bet.a.b')") is None


def a_comma_after_a_zero_stands_before_decimals(page: Page) -> None:
    mount(page, Bet("a.b", "How many?").get_state()).get_by_label("Your bet, a number").fill("0,125")
    page.keyboard.press("Enter")
    assert page.evaluate("mounted.model.get('answer')") == 0.125


def what_python_has_set_goes_before_what_the_page_kept(page: Page) -> None:
    place(question(page), "GPipe")
    bet = Bet(NAME, "Which of the two?", choices=("GPipe", "1F1B", "neither"))
    bet.answer = "neither"
    view = mount(page, bet.get_state())
    says(view, "Your bet: neither")
    says(question(page), "Your bet: neither")


def a_view_that_is_taken_away_stops_listening(page: Page) -> None:
    mount(page, Bet(NAME, "Which of the two?", choices=("GPipe", "1F1B", "neither")).get_state())
    page.evaluate("mounted.stop()")
    place(question(page), "GPipe")
    assert page.evaluate("[mounted.model.listeners.length, mounted.model.get('answer')]") == [0, None]


def damaged_data_say_so(page: Page) -> None:
    bet = Bet(NAME, "Which?", choices=("GPipe", "1F1B"))
    damage: dict[str, list[Any]] = {"name": [3, ""], "question": [None, ""], "choices": [None, ["one"], [1, 2]], "unit": [None]}
    states = [bet.get_state() | {name: value} for name, values in damage.items() for value in values]
    states += [bet.reveal("GPipe").get_state() | {"truth": truth} for truth in (None, "3F1B", 27)]
    for state in states:
        expect(mount(page, state).get_by_role("alert")).to_contain_text("The data of this question are missing or damaged")


@pytest.mark.needs("axe")
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_bets_are_accessible_before_and_after(new_page: Any, files: str, width: int, scheme: str) -> None:
    page = new_page(files + LAB3, scheme=scheme, width=width)
    without_others(page, ".hybridlab-bet", ".hybridlab-revealed")
    for step in ("asked", "wrong", "placed"):
        if step == "wrong":
            question(page).get_by_role("button", name="Place the bet").click()
        if step == "placed":
            question(page).get_by_label("Your bet, microbatches").fill("10")
            page.keyboard.press("Enter")
            place(page.locator(".hybridlab-bet").nth(1), "larger")
        assert violations(page, ".hybridlab-bet", ".hybridlab-revealed") == [], step
        sizes = page.evaluate(
            """() => [...document.querySelectorAll(".hybridlab-bet, .hybridlab-revealed")]
              .flatMap((view) => [...view.querySelectorAll("button, .choice, input[type=text]")])
              .map((each) => each.getBoundingClientRect().height).filter((height) => height)"""
        )
        assert sizes
        assert min(sizes) >= 44
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def on_paper_the_answers_stand_without_buttons(page: Page) -> None:
    place(question(page), "GPipe")
    page.emulate_media(media="print")
    says(question(page), "Your bet: GPipe")
    says(look_back(page), "Your bet was wrong.")
    for view in (question(page), look_back(page)):
        expect(view.get_by_role("button")).to_have_count(0)


def test_a_bet_with_choices(together: Callable[..., Page]) -> None:
    bet = Bet(NAME, "Which of the two?", choices=("GPipe", "1F1B", "neither"))
    page = together(bet, bet.reveal("neither"))
    questions = (
        a_bet_is_placed_with_the_keyboard_alone,
        a_bet_can_be_changed,
        without_a_choice_nothing_is_placed,
        without_a_bet_the_answer_is_folded,
        a_look_back_whose_question_is_not_there_says_so,
        a_browser_that_stores_says_nothing_of_it,
        junk_in_the_store_is_no_bet,
        two_views_of_one_bet_agree,
        a_kernel_hears_of_the_bet_and_can_set_it,
        a_comma_after_a_zero_stands_before_decimals,
        what_python_has_set_goes_before_what_the_page_kept,
        a_view_that_is_taken_away_stops_listening,
        damaged_data_say_so,
        on_paper_the_answers_stand_without_buttons,
    )
    in_order(page, questions, again=as_new)


def test_a_bet_with_a_number(together: Callable[..., Page]) -> None:
    bet = Bet("lab03.most", "How many microbatches?", unit="microbatches")
    page = together(bet, bet.reveal(27))
    in_order(page, (what_is_no_number_is_not_placed, a_number_can_be_placed), again=as_new)
