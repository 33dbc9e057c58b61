"""The ledger of the published documents: every statement, with the claims that judge it, or with the reason why there is none."""

from dataclasses import dataclass
from functools import partial
from html import escape

from hybridlab.checks import known_name
from hybridlab.course.claims.claim import DOCUMENTS
from hybridlab.errors import HybridLabError

NO_CLAIM = {  # why a statement has no claim
    "frame": "a title, a heading, the head of a table, or words that lead to the next line",
    "code": "lines of a program; what they print, and what their comments promise, stands in lines of its own",
    "definition": "what a word or a letter means",
    "setting": "a size, a tool or a machine that the authors chose",
    "aim": "what a test, the design or later work is to do",
    "opinion": "a judgement that no computation decides",
    "reference": "a source in which the page found no error, or one that it discusses in words",
    "not judged": "a statement that could be judged, but has no claim yet",
}


@dataclass(frozen=True)
class Passage:
    """One statement of a published document.

    Parameters
    ----------
    document : str
        A key of ``DOCUMENTS``.
    where : str
        Place in the document.
    lines : str
        The lines of the document with the statement, counted from 1: "330", "341-343", or several of these with spaces between them.
    text : str
        The statement in our words.
    claims : tuple of int
        Numbers of the claims that judge the statement.
    why : str
        If there is no claim, the reason, a key of ``NO_CLAIM``. Empty otherwise.

    Raises
    ------
    HybridLabError
        The document or the reason is unknown, or the statement has both claims and a reason, or neither.

    Examples
    --------
    >>> print(next(each for each in LEDGER.statements if 11 in each.claims))
    report, section 3.2: An A100 has 16 GB of memory. Claim 11.
    """

    document: str
    where: str
    lines: str
    text: str
    claims: tuple[int, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        known_name(self.document, DOCUMENTS, "document")
        if self.why:
            known_name(self.why, NO_CLAIM, "reason")
        if bool(self.claims) == bool(self.why):
            raise HybridLabError(f"a statement has claims, or a reason why it has none, but not both: {self.text}", "does-not-fit")

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each part.

        >>> Passage("report", "abstract", "1-8 16", "A title.", why="frame").spans
        ((1, 8), (16, 16))
        """
        ends = ([int(each) for each in part.split("-")] for part in self.lines.split())
        return tuple((each[0], each[-1]) for each in ends)

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.claims))
        judged = f"Claim{'s' if len(self.claims) > 1 else ''} {numbers}" if self.claims else f"No claim: {self.why}"
        return f"{self.document}, {self.where}: {self.text} {judged}."


@dataclass(frozen=True, repr=False)
class Ledger:
    """Statements of the documents. The value prints as text, and as a folded table for each document in the book.

    Parameters
    ----------
    statements : tuple of Passage

    Examples
    --------
    >>> print(LEDGER.of("notes"))  # doctest: +ELLIPSIS
    notes: ... statements, ... of them with claims
    """

    statements: tuple[Passage, ...]

    def of(self, document: str) -> "Ledger":
        """Return the statements of one document."""
        known_name(document, DOCUMENTS, "document")
        return Ledger(tuple(each for each in self.statements if each.document == document))

    @property
    def documents(self) -> tuple[str, ...]:
        """The documents with a statement, in the order of the statements."""
        return tuple(dict.fromkeys(each.document for each in self.statements))

    def __repr__(self) -> str:
        return "\n".join(f"{document}: {self.of(document)._count()}" for document in self.documents)

    def _repr_html_(self) -> str:
        reasons = "".join(f"<li><i>{why}</i>: {escape(text)}</li>" for why, text in NO_CLAIM.items())
        tables = "".join(self.of(document)._html(DOCUMENTS[document]) for document in self.documents)
        return f'<div class="ledger"><p>Why a statement has no claim:</p><ul>{reasons}</ul>{tables}</div>'

    def _count(self) -> str:
        return f"{len(self.statements)} statements, {sum(bool(each.claims) for each in self.statements)} of them with claims"

    def _html(self, title: str) -> str:
        """Return the statements of one document as a table in HTML, folded below its title and its counts."""
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("Place", "Statement", "Claims"))
        rows = "".join(map(_html_row, self.statements))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<details><summary>{escape(title.capitalize())}: {self._count()}</summary>{table}</details>"


def _html_row(statement: Passage) -> str:
    links = ", ".join(f'<a href="#claim-{number}">{number}</a>' for number in statement.claims)
    claims = links or f"none: {statement.why}"
    return f'<tr><td>{escape(statement.where)}</td><th scope="row">{escape(statement.text)}</th><td>{claims}</td></tr>'


report, notes, simulator, event_log, sweeps = (partial(Passage, each) for each in ("report", "notes", "simulator", "event log", "sweeps"))
CODE, OUTPUT = "program", "program and its output"
FRAMES = "Titles, headings, heads of tables, and words that lead to the next line."

# The formatter would put each argument on its own line, so each table ends with "fmt: skip".
_REPORT = (
    report(CODE, "9-14", "3 stages, 4 replicas, 6 microbatches, 120 gradients a device, INT8, a learning rate of 0.01.", why="setting"),
    report(CODE, "66-94", "The steps of each device follow 1F1B.", (63,)),
    report(CODE, "104-162", "Gradients are summed by a ring, chunk by chunk.", (72,)),
    report(CODE, "172-186", "The accuracy is that of the trained model.", (74,)),
    report(CODE, "188-190", "The bytes of all messages are counted.", (61,)),
    report(CODE, "215-222", "The method verify compares the weights of the replicas with each other.", (73,)),
    report(OUTPUT, "260-264", "12 nodes: 3 stages and 4 replicas, with INT8.", why="setting"),
    report(OUTPUT, "268", "The run took 0.017 s.", (108,)),
    report(OUTPUT, "270", "49 % of the points are predicted.", (74,)),
    report(OUTPUT, "272", "2160 bytes were sent.", (61,)),
    report(OUTPUT, "276-282", "The weights of the replicas differ by some 0.0003.", (62,)),
    report(OUTPUT, "284-304", "The grid of steps shows how the pipeline ran.", (63, 111)),
    report(CODE, "1-8 16-64 96-102 164-170 192-213 224-256", "Imports, messages in INT8, devices, optimiser, printing.", why="code"),
    report("abstract", "318", "The work joins a 1F1B pipeline with data parallelism over a ring.", (63, 72)),
    report("abstract", "318", "Python threads stand for several GPUs on one machine.", (78,)),
    report("abstract", "322", "The problem gets measures of speedup, communication and memory.", (16, 96, 97)),
    report("abstract", "323", "Both kinds of parallelism were designed and implemented.", (63, 72, 78)),
    report("abstract", "325", "A framework measures many settings.", (42, 44, 108)),
    report("abstract", "326", "The effects of microbatches, depth and replicas were analysed.", (42, 44, 46)),
    report("abstract", "330", "Four GPUs are expected to be 6 to 8 times as fast as one.", (1,)),
    report("abstract", "331", "Communication takes 15 to 20 % of the time.", (2,)),
    report("abstract", "332", "Memory is 30 to 40 % less than without a pipeline.", (3,)),
    report("section 2.1", "339", "ResNets and Transformers hardly fit into the memory of one GPU.", (107,)),
    report("section 2.1", "339", "So training must be distributed.", (107,)),
    report("section 2.1", "339", "The two main ways are data and pipeline parallelism.", (4,)),
    report("section 2.1", "341-342", "Data parallelism: a copy of the model on each GPU, and an all-reduce after each step.", (4,)),
    report("section 2.1", "343", "Pipeline parallelism: each GPU has some layers, and microbatches keep all GPUs busy.", (4,)),
    report("section 2.2", "347", "Neither replicas alone nor stages alone are best.", (77,)),
    report("section 2.2", "349", "With many GPUs, communication spoils data parallelism alone.", (5,)),
    report("section 2.2", "350", "In a pipeline alone, devices wait for earlier stages.", (34, 77)),
    report("section 2.2", "352", "Both together scale better and are more efficient.", (77,)),
    report("section 2.3", "358", "GPipe runs all forwards and then all backwards.", (6,)),
    report("section 2.3", "359", "GPipe holds all activations and has large bubbles.", (6, 22)),
    report("section 2.3", "360", "1F1B alternates both, and so has smaller bubbles.", (7,)),
    report("section 2.3", "361", "Warm-up: the forwards that fill the pipeline.", why="definition"),
    report("section 2.3", "362", "The steady state lowers both memory and bubbles.", (7, 23)),
    report("section 2.3", "364", "Cool-down: the backwards that are left.", why="definition"),
    report("section 2.3", "368", "With a central server, communication grows in proportion to the workers.", (8,)),
    report("section 2.3", "369", "A ring all-reduce is a sum and a broadcast along the ring.", (98,)),
    report("section 2.3", "369", "In a ring, each GPU's communication grows as a logarithm.", (9,)),
    report("section 2.3", "370", "A ring uses the whole of each link, so no all-reduce is better.", (10,)),
    report("section 2.3", "371", "A ring of N GPUs takes 2(N-1) steps.", (10,)),
    report("section 3.1", "378", "The GPUs are stages times replicas, and throughput is to be as high as possible.", why="aim"),
    report("section 3.1", "380-382", "Memory, communication and the time of an epoch are to be small.", why="aim"),
    report("section 3.2", "386", "An A100 has 16 GB of memory.", (11,)),
    report("section 3.2", "387", "NVLink carries about 500 GB/s.", (12,)),
    report("section 3.2", "387", "InfiniBand carries about 200 GB/s.", (13,)),
    report("section 3.2", "388", "The computing capacity of an A100 is 312 TFLOP/s.", (14,)),
    report("section 3.3.1", "394-396", "The speedup is the time on one GPU divided by the time on all.", (97,)),
    report("section 3.3.1", "398", "The speedup is nearly the number of GPUs; communication lowers it.", (15,)),
    report("section 3.3.2", "402-404", "The cost of communication is its share of the time, between stages and replicas.", (16,)),
    report("section 3.3.2", "406", "A good system spends 15 to 25 % on communication.", (17,)),
    report("section 3.3.3", "410", "Memory efficiency is the size of the model divided by the peak of a GPU.", (96,)),
    report("section 3.3.3", "412", "Activations, gradients and optimiser take 40 to 60 % of a GPU's memory.", (18,)),
    report("section 3.3.4", "416", "The time of a step is computing plus communication.", (19,)),
    report("section 3.3.4", "419", "A typical step takes 1 to 2 s.", (20,)),
    report("section 3.4", "423", "Many samples a second.", why="aim"),
    report("section 3.4", "424", "More than 80 % efficiency on more and more GPUs.", (21,)),
    report("section 3.4", "425", "Less memory than without a pipeline.", why="aim"),
    report("section 3.4", "426", "All kinds of models and batches.", why="aim"),
    report("section 4.1", "432-436", "2 stages and 2 replicas on 4 GPUs.", why="setting"),
    report("section 4.2, choice 1", "443", "GPipe idles for 30 to 40 % of the time, 1F1B for 2 to 5 %.", (22,)),
    report("section 4.2, choice 1", "444", "1F1B has a lower peak of activations.", (23,)),
    report("section 4.2, choice 1", "445", "1F1B is a little more complex than GPipe.", why="opinion"),
    report("section 4.2, choice 1", "446", "1F1B is worth it: much less memory and smaller bubbles.", (7, 23)),
    report("section 4.2, choice 2", "451", "A server uses half of the bandwidth, a ring all of it.", (25,)),
    report("section 4.2, choice 2", "452", "The latency of both grows as a logarithm.", (24,)),
    report("section 4.2, choice 2", "453", "A ring scales very well, a server badly.", (100,)),
    report("section 4.2, choice 3", "457", "The global batch is the microbatch times the number of microbatches.", (26,)),
    report("section 4.2, choice 3", "461-462", "256 samples in a batch, 32 in a microbatch.", why="setting"),
    report("section 4.2, choice 3", "463", "This makes 8 microbatches.", (26,)),
    report("section 4.2, choice 3", "463-465", "8 are enough: a pipeline needs as many microbatches as stages.", (27,)),
    report("section 4.2, choice 4", "470", "Python suits quick experiments.", why="opinion"),
    report("section 4.2, choice 4", "471", "Threads imitate GPUs that run at the same time.", (28,)),
    report("section 4.2, choice 4", "472", "The modules queue, time and random suffice.", (78,)),
    report("section 4.2, choice 4", "473", "The target is a cluster of A100s or H100s, 8 in a node.", why="setting"),
    report("section 4.2, choice 4", "474", "NVLink inside a node carries 500 GB/s, InfiniBand between nodes 200 GB/s.", (12, 13)),
    report("section 4.2, choice 4", "475-476", "Linux, PyTorch, FSDP and Megatron are what production uses.", why="opinion"),
    report("section 5.1.1", "484-502", "A device has queues, a memory counter and a log.", (78,)),
    report("section 5.1.2", "506-517", "A trainer starts four devices as threads, with 8 microbatches.", (78,)),
    report("section 5.2", "524-537", "Rank 0: warm-up of 1 step, 6 pairs, cool-down of 2 steps.", (29,)),
    report("section 5.2", "541-546", "Rank 1: a warm-up of 1 step, then pairs, and the last backward as cool-down.", (30,)),
    report("section 5.3", "553-554", "A forward takes 50 ms, and a backward 80 ms, because it computes more.", (31,)),
    report("section 5.3", "555", "Computing 8 microbatches takes 1040 ms.", (32,)),
    report("section 5.3", "559-561", "The ring takes 2(D-1) steps and 40 ms.", (33,)),
    report("section 5.3", "560", "A step of the ring takes 20 ms.", (101,)),
    report("section 5.3", "562", "The ring's time is the size of the model divided by the bandwidth.", (99,)),
    report("section 5.3", "566-568", "Filling costs 50 ms, draining 80 ms, together 130 ms.", (34,)),
    report("section 5.3", "570", "A step takes 1210 ms.", (35,)),
    report("section 5.4", "574-577", "A device class, a trainer class, a timeline and a start fill some 180 lines.", (78,)),
    report("section 5.5", "582-585", "The simulation sleeps, counts memory and uses threads in place of GPUs.", (78,)),
    report("section 5.5", "587", "Real PyTorch can follow.", why="aim"),
    report("section 6.1, test 1", "595-599", "All 8 microbatches complete, and in the right order.", (86,)),
    report("section 6.1, test 1", "600", "The order begins with two forwards, then both kinds alternate.", (37,)),
    report("section 6.1, test 1", "601", "No data races are expected.", (87,)),
    report("section 6.1, test 2", "606-615", "One GPU takes 1040 ms.", (38,)),
    report("section 6.1, test 2", "616", "The measured time is to be filled in.", why="aim"),
    report("section 6.1, test 3", "621-628", "Four GPUs take 1040, 40 and 130 ms, together 1210 ms.", (35,)),
    report("section 6.1, test 3", "632-633", "Four GPUs are 0.86 times as fast as one, because of communication.", (39,)),
    report("section 6.1, test 4", "638-641", "The cost of communication includes the messages between stages.", (16,)),
    report("section 6.1, test 4", "645-652", "Communication is 40 + 20 ms, 5 % of a step.", (40,)),
    report("section 6.1, test 4", "647", "The messages between stages take 20 ms.", (36, 40)),
    report("section 6.1, test 4", "653", "The share is below 15 to 20 % because the simulation is simple.", (2, 94)),
    report("section 6.1, test 5", "658-664", "80 units without a pipeline, 20 with 1F1B: 75 % less.", (41,)),
    report("section 6.1, test 5", "666-668", "30 to 40 % less is expected; more, because the simulation interleaves perfectly.", (91,)),
    report("section 6.2, benchmark 1", "674", "4 GPUs in 2 stages.", why="setting"),
    report("section 6.2, benchmark 1", "676-680", "More microbatches take longer and lower the speedup.", (42, 131)),
    report("section 6.2, benchmark 1", "676-680", "The columns of computing and of the ring.", (101, 102)),
    report("section 6.2, benchmark 1", "682", "Communication costs the same for all.", (101,)),
    report("section 6.2, benchmark 1", "682", "With fewer microbatches, communication weighs less.", (43,)),
    report("section 6.2, benchmark 2", "686", "4 GPUs and 8 microbatches.", why="setting"),
    report("section 6.2, benchmark 2", "688-692", "1, 2, 4 and 8 stages take 1040, 650, 650 and 1040 ms.", (44,)),
    report("section 6.2, benchmark 2", "688-692", "The columns of warm-up, steady state and cool-down.", (102,)),
    report("section 6.2, benchmark 2", "694", "2 to 4 stages are best.", (113,)),
    report("section 6.2, benchmark 3", "698", "The number of replicas changes.", why="setting"),
    report("section 6.2, benchmark 3", "700-704", "1, 2, 4 and 8 replicas need 0, 20, 60 and 140 ms for the ring.", (45,)),
    report("section 6.2, benchmark 3", "700-704", "A step of the ring takes 10 ms.", (101,)),
    report("section 6.2, benchmark 3", "700-704", "These are 1.7, 4.9 and 11.5 % of a step.", (46,)),
    report("section 7.1.1", "714-717", "The machine of the run: an i7 with 8 cores and 16 GB.", why="setting"),
    report("section 7.1.1", "722-726", "The log lists the first forward of ranks 0, 1, 2 and 3, in this order.", (82,)),
    report("section 7.1.1", "727", "The run takes 1.234 s.", (47, 81)),
    report("section 7.1.1", "732-735", "In the timeline the second stage begins 50 ms after the first.", (82,)),
    report("section 7.1.1", "736", "At 1.200 s two ranks run the last backward, and two the all-reduce.", (81,)),
    report("section 7.1.2", "741-743", "Measured: 1045 ms on one GPU, 1234 ms on four, a speedup of 0.82.", (47,)),
    report("section 7.1.2", "741-745", "What was observed is close to what was expected.", why="opinion"),
    report("section 7.1.2", "744", "Measured: communication takes 4.2 %.", (79,)),
    report("section 7.1.2", "745", "Measured: a peak of 22 units of memory.", (80,)),
    report("section 7.2.1", "749", "Communication costs less than the 15 to 20 % that were expected.", (2, 79)),
    report("section 7.2.1", "753", "The model leaves out messages between stages.", (36,)),
    report("section 7.2.1", "754", "Real systems send 16 bits, which costs time of the processor.", (49,)),
    report("section 7.2.1", "755", "Joining threads is faster than synchronising CUDA streams.", (90,)),
    report("section 7.2.1", "756", "Computing takes 26 times as long as communication, which is realistic for small models.", (48,)),
    report("section 7.2.1", "758-760", "Larger gradients take longer to send.", (95,)),
    report("section 7.2.1", "761", "More replicas need more steps of the ring.", (95,)),
    report("section 7.2.1", "762", "Real systems will spend 15 to 25 % on communication.", (94,)),
    report("section 7.2.2", "769", "Filling and draining cost 30 ms.", (50,)),
    report("section 7.2.2", "770", "The all-reduce costs 40 ms.", (33,)),
    report("section 7.2.2", "771-773", "With threads and locks all overheads are 75 to 85 ms.", (89,)),
    report("section 7.2.2", "764", "A speedup of 1 was expected, and 0.82 was seen.", (47, 83)),
    report("section 7.2.2", "775", "The expected overhead is 7 %.", (51,)),
    report("section 7.2.2", "777", "The observed overhead is 16 %.", (51,)),
    report("section 7.2.2", "779", "Python's lock is the cause.", (51,)),
    report("section 7.2.2", "779", "Scheduling threads costs more in Python than in CUDA.", (51,)),
    report("section 7.2.2", "781", "Processes or C++ would help.", why="aim"),
    report("section 7.2.3", "785", "30 to 40 % less memory was expected, 75 % less was seen.", (41, 91)),
    report("section 7.2.3", "789", "The reason is perfect interleaving: each backward follows its forward at once.", (52, 91)),
    report("section 7.2.3", "790", "Real pipelines are deeper than the simulated one and hold several activations.", (92,)),
    report("section 7.2.3", "791", "Adding up gradients costs memory that the model leaves out.", (133,)),
    report("section 7.2.3", "793", "40 to 50 % less is realistic.", (52,)),
    report("section 7.3", "798", "The speedup is 8 % below the expected 0.9, because of the lock.", (51, 83)),
    report("section 7.3", "799", "Communication is 73 % below the expectation, because the model is simple.", (36, 84)),
    report("section 7.3", "800", "The saved memory is 87 % above the expectation: perfect scheduling, little depth.", (85, 91, 92)),
    report("section 7.3", "801", "The time is 2.8 % above the expectation.", (85,)),
    report("section 7.4", "807-809", "All 8 forwards and backwards ran, and then the all-reduce.", (86,)),
    report("section 7.4", "810", "No data races are found, because the log is safe for threads.", (87,)),
    report("section 7.4", "811", "The memory counter goes up and down by 10 units.", (88,)),
    report("section 8.1", "817", "Hybrid parallelism works: four simulated GPUs run in a coordinated way.", (78, 87)),
    report("section 8.1", "818", "A speedup of 0.82 cannot be avoided and agrees with theory.", (53,)),
    report("section 8.1", "819", "1F1B frees activations right after the backward, which large models need.", (106,)),
    report("section 8.1", "820", "Real clusters spend 15 to 25 % on communication, more than the simulation.", (94,)),
    report("section 8.2", "826-828", "Next: messages between stages, other models, a comparison with GPipe.", why="aim"),
    report("section 8.2", "832-834", "Then: PyTorch, a cluster of 8 A100s, compressed gradients.", why="aim"),
    report("section 8.2", "838-840", "Later: more stages, tensor parallelism, less communication.", why="aim"),
    report("section 8.3", "846", "Hybrid parallelism makes it possible to train a trillion parameters.", (54,)),
    report("section 8.3", "847", "Training takes days in place of weeks.", (93,)),
    report("section 8.3", "848", "Cloud computing becomes 30 to 40 % cheaper.", (55,)),
    report("section 8.3", "852-854", "The work helps researchers: a basis, models of time, schedules without GPUs.", why="opinion"),
    report("section 9, reference 1", "858", "GPipe appeared at MLSys in 2021.", (56,)),
    report("section 9, reference 2", "859", "The paper on Megatron-LM is by Shoukry and Shi, at SIGCOMM.", (57,)),
    report("section 9, reference 3", "861", "PyTorch Distributed appeared at VLDB in 2021.", (58,)),
    report("section 9, reference 4", "862", "Horovod has the arXiv number 1802.16579.", (59,)),
    report("section 9, references 5 and 6", "863-864", "Guides of two vendors.", why="reference"),
    report("section 9, reference 7", "865", "The paper of Thakur and others of 2005.", why="reference"),
    report("section 9, reference 8", "866", "Rabenseifner's paper is in volume 3241 of the lecture notes.", (60,)),
    report("section 9, reference 9", "867", "The paper on ResNet appeared at the International Conference on Computer Vision.", (132,)),
    report("section 9, reference 10", "868", "The paper on Transformers.", why="reference"),
    report(
        "throughout",
        "266 308-316 320 328 335-337 345 354-356 366 374-376 384 390-392 400 408 414 421 428-430 438-442 448-450 455 459 467-469 478-482"
        " 504 519-521 549-551 557 564 572 579-581 589-593 604 609 619 624 636 645 656 660 670-672 684 696 706-712 719 730 738-740 747 751"
        " 766-768 783 787 795-797 803-805 813-815 822-824 830 836 842-844 850 856",
        FRAMES, why="frame",
    ),
)  # fmt: skip
_NOTES = (
    notes("section 1", "4-5", "Python is simple and suits quick experiments without hardware.", why="opinion"),
    notes("section 1", "6", "Such work is usually done with PyTorch or TensorFlow.", why="opinion"),
    notes("section 1", "8", "Threads imitate several GPUs within one process.", (68,)),
    notes("section 1", "9", "Queues are the buffers between the stages.", (68,)),
    notes("section 1", "10", "Delays are simulated with the modules time and random.", (78,)),
    notes("section 1", "11", "Any local computer will do.", why="setting"),
    notes("section 2", "15-16", "A processor with several cores, Windows or Linux.", why="setting"),
    notes("section 2", "17", "The simulation on one processor behaves like a cluster of GPUs.", (68,)),
    notes("section 2", "19", "A node has, for example, 8 A100 or H100 GPUs.", (70,)),
    notes("section 2", "20", "NVLink inside a node, InfiniBand between nodes.", (70,)),
    notes("section 2", "21", "Linux, tuned for such work.", why="setting"),
    notes("section 2", "22", "NCCL's all-reduce is a ring.", (71,)),
    notes("section 3", "26", "1F1B has the smallest bubbles.", (64,)),
    notes("section 3", "26", "1F1B has a much lower peak of memory.", (65,)),
    notes("section 3", "26", "1F1B frees activations during the backwards, before all forwards are done.", (106,)),
    notes("section 3", "27", "With a ring the bytes at the bottleneck do not grow with the GPUs; with a server they do.", (66,)),
    notes("section 3", "30", "Each device has a thread of its own.", (68,)),
    notes("section 3", "31", "Joins and common logs synchronise the threads.", (104,)),
    notes("section 3", "34", "The global batch is cut into 8 microbatches.", (67,)),
    notes("section 3", "34", "Microbatches let stages compute and communicate at once.", (105,)),
    notes("section 3", "37", "A forward takes 50 ms, a backward 80 ms.", (31,)),
    notes("section 3", "37", "Messages between stages take 20 ms.", (103,)),
    notes("section 3", "37", "Steps of 20 ms stand for fast links.", (69,)),
    notes("throughout", "1-3 7 13-14 18 24-25 29 33 36", FRAMES, why="frame"),
)  # fmt: skip
_SIMULATOR = (
    simulator(CODE, "9-14", "3 stages, 4 replicas, 6 microbatches, 120 gradients a device, INT8, a learning rate of 0.01.", why="setting"),
    simulator("timeline of 1F1B", "66-94", "The steps of each device follow 1F1B.", (75,)),
    simulator("ring all-reduce", "104-162", "Gradients are summed by a ring, chunk by chunk.", (72,)),
    simulator("prediction accuracy", "172-186", "The accuracy is that of the trained model.", (74,)),
    simulator(CODE, "188-190", "The bytes of all messages are counted.", (61,)),
    simulator("check of the replicas", "215-222", "The method verify compares the weights of the replicas with each other.", (73,)),
    simulator("output", "260-262", "12 nodes: 3 stages and 4 replicas, with INT8.", why="setting"),
    simulator("output", "266", "The run took 0.017 s.", (108,)),
    simulator("prediction accuracy", "267", "49 % of the points are predicted.", (74,)),
    simulator("output", "268", "2160 bytes were sent.", (61,)),
    simulator("check of the replicas", "272-276", "The weights of the replicas differ by some 0.0003.", (62, 73)),
    simulator("timeline of 1F1B", "278-296", "In 8 steps the pipeline of 1F1B is complete.", (75,)),
    simulator("timeline of 1F1B", "278-296", "The printed grid is what the program prints.", (111,)),
    simulator(CODE, "1-8 16-64 96-102 164-170 192-213 224-256", "Imports, messages in INT8, devices, optimiser, printing.", why="code"),
    simulator("throughout", "264 300", FRAMES, why="frame"),
)  # fmt: skip
_EVENT_LOG = (
    event_log(CODE, "5-13", "3 stages, 4 replicas, 6 microbatches, 120 gradients a device, INT8.", why="setting"),
    event_log("event timeline", "69-72", "Each event of the log has a logical time.", (112,)),
    event_log("event timeline", "74-96", "The events of each device follow 1F1B.", (76,)),
    event_log("gradient accumulation", "98-100", "Each backward adds its gradient.", (110,)),
    event_log("ring all-reduce", "102-164", "This is a true ring all-reduce, and the same in each run.", (72, 109)),
    event_log("check of the replicas", "200-207", "The method verify compares the weights of the replicas with each other.", (73,)),
    event_log(CODE, "209-214", "The bytes of all messages are counted.", (61,)),
    event_log("output", "237-241", "12 nodes: 3 stages and 4 replicas, with INT8.", why="setting"),
    event_log("check of the replicas", "245-251", "The weights of the replicas differ by some 0.0003.", (109,)),
    event_log("output", "253-255", "2160 bytes were sent.", (61, 109)),
    event_log("event timeline", "257-406", "144 events show how the pipeline ran.", (76,)),
    event_log("event timeline", "259", "The first column is a time.", (112,)),
    event_log(CODE, "1-3 15-67 166-198 216-233", "Imports, messages in INT8, devices, optimiser, printing.", why="code"),
    event_log("output", "243", "The run is complete.", why="frame"),
    event_log("throughout", "410", FRAMES, why="frame"),
)  # fmt: skip
_SWEEPS = (
    sweeps("introduction", "2", "Hanayo has 1 and 2 waves.", (115,)),
    sweeps("introduction", "2", "Five kinds of schedules are covered.", (121,)),
    sweeps("notation", "5-9", "D devices, and the microbatches between two flushes.", why="definition"),
    sweeps("notation", "11-15", "Times of a forward, of a backward and of weight gradients on a device.", why="definition"),
    sweeps("notation", "17", "Any two devices have the same latency.", why="setting"),
    sweeps("notation", "19", "The whole time runs from the first start to the last end on all devices.", why="definition"),
    sweeps("notation", "21", "The bubble ratio is the idle share of all devices.", (126,)),
    sweeps("disclaimer", "24", "That the devices divide the microbatches costs no generality.", (116,)),
    sweeps("disclaimer", "24", "Hanayo's paper shows only as many microbatches as devices.", why="not judged"),
    sweeps("disclaimer", "24", "To be fair, Hanayo runs once for each group of microbatches.", (129,)),
    sweeps("disclaimer", "26", "The two halves of a backward take equally long.", (119,)),
    sweeps("disclaimer", "28", "Chunks cut the microbatch, and each takes its share of the time.", (125,)),
    sweeps("disclaimer", "30", "Twice as many microbatches as devices, if nothing else is said.", why="setting"),
    sweeps("disclaimer", "30", "Sends and receives are asynchronous.", (120,)),
    sweeps("program", "33", "The module pipeline has the schedules.", (121,)),
    sweeps("weak scaling", "38-39", "This is weak scaling: microbatches grow with the devices.", (127,)),
    sweeps("weak scaling", "39 90-92", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("strong scaling", "94-95", "32 microbatches for any number of devices.", why="setting"),
    sweeps("strong scaling", "95 148-150", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("strong scaling", "118-125", "A schedule that fails has no point in the figure.", (128,)),
    sweeps("recompute", "153", "A share r of the forward is computed again: a backward takes 2 + r forwards.", why="definition"),
    sweeps("recompute", "155 172", "A backward takes 800/D.", (124,)),
    sweeps("recompute", "155 161", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("recompute", "164 210-214", "r goes from 0 to 1, for up to 32 devices.", why="setting"),
    sweeps("recompute", "173-174", "What is computed again lengthens the input gradient alone.", (119,)),
    sweeps("MBS", "216-217 221", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("MBS", "217 267-270", "Up to 32 devices.", (117,)),
    sweeps("MBS", "217 222", "1, 2, 4 and 8 microbatches a device.", why="setting"),
    sweeps("waves", "273 279", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("waves", "273-275 280", "2, 4, 6 and 8 chunks, which are 1 to 4 waves.", (115,)),
    sweeps("T_B/T_W", "333 337", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("T_B/T_W", "333 381-384", "1, 2 and 4 microbatches a device.", (118,)),
    sweeps("T_B/T_W", "333 339", "The input gradient takes 0.2 to 0.8 of the backward.", why="setting"),
    sweeps("bubble sensitivity", "386-387 391-392", "Six latencies up to 32, and three numbers of microbatches.", why="setting"),
    sweeps("imbalanced workloads", "445", "The first and the last device need more time, in the backward twice as much.", why="setting"),
    sweeps("imbalanced workloads", "447 451", "Latencies of 0, 5 and 10.", (114,)),
    sweeps("imbalanced workloads", "447 453", "The extra time goes up to half of a forward.", (122,)),
    sweeps("imbalanced workloads", "447 462-463", "The times are divided by the devices.", (123,)),
    sweeps("imbalanced workloads", "464-465", "The extra time of ZB-H1 is in the input gradient alone.", (119,)),
    sweeps(
        "throughout", "34-36 42-88 98-117 126-146 158-208 220-265 278-330 336-379 390-441 450-506",
        "Imports, the settings of each schedule, runs, and figures.", why="code",
    ),
    sweeps("throughout", "1 4 23 32 41 97 152 157 219 272 277 332 335 389 443 449", FRAMES, why="frame"),
)  # fmt: skip

LEDGER = Ledger((*_REPORT, *_NOTES, *_SIMULATOR, *_EVENT_LOG, *_SWEEPS))
