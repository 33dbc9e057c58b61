// The form below a number task, for a page without Python: fields for the numbers, a button, and the feedback of number_judge.js. The
// browser keeps what was checked last, so a passed task is still marked after the page is loaded again.

(() => {
  const KEPT = "hybridlab.task."; // the key of the texts in the browser's storage, followed by the key of the task
  const LONGEST = 400; // characters in a field
  const DAMAGED = "The data of this task are missing or damaged, so the page cannot check an answer. Reload the page.";
  const NOT_KEPT = "This browser does not store anything for this page: your answer will not survive a reload.";
  const HOW = "Write digits, such as 12.5 or 1e6.";
  const HOW_MANY = "Write digits; in a field for several numbers, put a comma and a space between them.";

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function kept(key, count) {
    try {
      const texts = JSON.parse(localStorage.getItem(KEPT + key));
      return Array.isArray(texts) && texts.length === count && texts.every((text) => typeof text === "string") ? texts : null;
    } catch {
      return null; // the browser has no storage, or the stored text is not an answer
    }
  }

  // Returns whether the browser has kept the texts.
  function keep(key, texts) {
    try {
      if (texts.some((text) => text.trim())) localStorage.setItem(KEPT + key, JSON.stringify(texts));
      else localStorage.removeItem(KEPT + key);
      return true;
    } catch {
      return false;
    }
  }

  const idOf = ({ key }) => `task-${key.replace(".", "-")}`;

  function fieldsOf(task) {
    return task.numbers.flatMap(({ fields }) => fields).map(({ label }, place) => {
      const id = `${idOf(task)}-${place}`;
      const input = make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false", maxlength: LONGEST });
      return { input, element: make("div", { class: "number-task-field" }, make("label", { for: id }, label), input) };
    });
  }

  function draw(box, task) {
    const id = idOf(task);
    const fields = fieldsOf(task);
    const inputs = fields.map(({ input }) => input);
    const head = make("legend", {}, `Check your answer to ${task.key} here`);
    const several = task.numbers.some(({ ordered }) => !ordered);
    const how = make("p", { class: "number-task-how", id: `${id}-how` }, several ? HOW_MANY : HOW);
    const [verdict, sentence] = [make("strong"), make("span")];
    const feedback = make("p", { class: "number-task-feedback", role: "status", id: `${id}-feedback` }, verdict, sentence);
    const note = make("p", { class: "number-task-how" });
    const rows = make("div", { class: "number-task-fields" }, ...fields.map(({ element }) => element));
    const button = make("button", { type: "submit" }, "Check");
    const form = make("form", { novalidate: "" }, make("fieldset", {}, head, how, rows), button, feedback, note);

    const clear = () => {
      verdict.textContent = sentence.textContent = "";
      delete box.dataset.verdict;
      delete box.dataset.code;
      for (const input of inputs) input.removeAttribute("aria-invalid");
    };
    // Shows the feedback on the texts in the fields.
    const judge = () => {
      const found = globalThis.numberJudge.judged(task, inputs.map(({ value }) => value));
      verdict.textContent = found.passed ? "Passed" : "Not yet";
      sentence.textContent = `: ${found.sentence}`;
      box.dataset.verdict = found.passed ? "passed" : "wrong";
      box.dataset.code = found.code;
      if ("field" in found) inputs[found.field].setAttribute("aria-invalid", "true");
      return found;
    };
    for (const input of inputs) {
      input.setAttribute("aria-describedby", `${how.id} ${feedback.id}`);
      input.addEventListener("input", clear);
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clear();
      const { field } = judge();
      note.textContent = keep(task.key, inputs.map(({ value }) => value)) ? "" : NOT_KEPT;
      if (field !== undefined) inputs[field].focus();
    });
    const before = kept(task.key, inputs.length);
    if (before) {
      inputs.forEach((input, place) => (input.value = before[place]));
      judge();
    }
    box.replaceChildren(form);
  }

  for (const box of document.querySelectorAll(".number-task")) {
    try {
      draw(box, JSON.parse(box.querySelector("script").textContent));
    } catch (error) {
      console.warn("number task", error);
      box.replaceChildren(make("p", { class: "number-task-damaged" }, DAMAGED));
    }
  }
})();
