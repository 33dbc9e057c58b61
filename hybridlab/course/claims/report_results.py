"""The claims of the published report in its sections 7 to 9: results, discussion and references."""

from hybridlab.course.claims.claim import LAB_2, LAB_3, LAB_4, LAB_5, LAB_6, LAB_8, LAB_9, Claim
from hybridlab.course.published.benchmarks import METRICS

REPORT = "report"  # the key of DOCUMENTS


# The formatter would put each argument on its own line, so the table ends with "fmt: skip".
RESULT_CLAIMS = (
    # The observed run: section 7.1
    Claim(
        82, REPORT, "section 7.1.1, log", "Ranks 0, 1, 2 and 3 begin the forward of microbatch 0 in this order.", "wrong",
        "Rank 1 needs the output of rank 0, and rank 2, the first stage of the other replica, needs no input, so in every reading rank 1 "
        "begins at least one forward later than rank 2, as the table below the log says.",
        labs=(LAB_8,), fault="false statement",
    ),
    Claim(
        81, REPORT, "section 7.1.1, table",
        "At 1.200 s ranks 0 and 2 are in the backward of microbatch 7, and the step ends at 1.234 s.", "wrong",
        "The all-reduce of these ranks follows their backward and takes 40 ms (section 7.2.2), so the step ends at 1.240 s or later, even "
        "if the backward ends at 1.200 s.",
        printed=(1.2, 1.234), unit="s", labs=(LAB_8,), fault="false statement",
    ),
    Claim(
        47, REPORT, "section 7.1.2", "One GPU takes 1045 ms and four take 1234 ms, a speedup of 0.82.", "wrong",
        "The quotient of the two times is 0.85; four GPUs that do two or four times its work are 1.7 or 3.4 times as fast as one GPU "
        "with the same work.",
        # A printed number that also stands in a table of the report is taken from the module with this table.
        printed=(METRICS[2].observed,), unit="times", labs=(LAB_6, LAB_8, LAB_9), fault="false statement",
    ),
    Claim(
        79, REPORT, "section 7.1.2", "Communication takes 4.2 % of the observed step.", "wrong",
        "The parts that the report names, 40 ms of all-reduce with or without 20 ms of messages, are 3.2 or 4.9 % of the observed step, "
        "and 4.1 % if messages count only as far as they lengthen the step; no share of the computed step rounds to 4.2 %.",
        printed=(METRICS[3].observed,), unit="%", labs=(LAB_9,), fault="false statement",
    ),
    Claim(
        80, REPORT, "section 7.1.2", "The memory for activations has a peak of 22 units.", "wrong",
        "A microbatch adds 10 units (section 7.4), so each peak is a multiple of 10, or of 5 if these units are shared by two stages; the "
        "first stage holds 20 or 10 units, and with 22 units 1F1B would save 72.5 % and not the 75 % of section 7.2.3.",
        printed=(METRICS[4].observed,), unit="units", labs=(LAB_9,), fault="false statement",
    ),
    # The reasons for the share of communication: section 7.2.1
    Claim(
        49, REPORT, "section 7.2.1", "Gradients in 16 bits cost processor time for their compression.", "wrong",
        "In mixed precision the GPU computes gradients in 16 bits, so nothing is left to convert; gradients in 32 bits are converted on "
        "the GPU, because their way to the processor and back alone takes far longer.",
        sources=("micikevicius2018mixed", "rajbhandari2020zero"), labs=(LAB_5,), fault="false reason",
    ),
    Claim(
        90, REPORT, "section 7.2.1",
        "Communication takes less than 15 to 20 % because joins of threads are faster than the synchronisation of CUDA streams.", "wrong",
        "The report has no source for the two times, and their difference explains too little: even if a GPU waited a millisecond after "
        "each operation and each step of the ring, the share would lie below this range.",
        labs=(LAB_8,), fault="false reason",
    ),
    Claim(
        48, REPORT, "section 7.2.1", "Computing takes 26 times as long as communication, which is realistic for small models.", "depends",
        "It holds if a stage computes for 1040 ms and nearly a gigabyte of gradients goes over one InfiniBand port; with less work for a "
        "stage the quotient is 13 or less, over NVLink all quotients are ten times as large, and for a small GPT the planner predicts a "
        "far larger one.",
        printed=(26,), labs=(LAB_6, LAB_9),
    ),
    Claim(
        95, REPORT, "section 7.2.1", "Larger gradients take more time, and more replicas need more steps of the ring.", "right",
        "Both hold, but without latency the ring takes less time than all gradients sent twice, however many replicas there are.",
        labs=(LAB_4, LAB_6),
    ),
    Claim(
        94, REPORT, "sections 7.2.1 and 8.1", "On real clusters communication takes 15 to 25 % of a step, more than in the simulation.",
        "depends",
        "The planner predicts such a share for four of ten published runs if messages inside groups of GPUs that share a layer count, and "
        "at most 4.2 % between stages and replicas alone; claim 17 asks the same of the report's own step.",
        printed=((15, 25),), unit="%", sources=("narayanan2021megatron",),
    ),
    # Overheads and memory: sections 7.2.2 and 7.2.3
    Claim(
        50, REPORT, "section 7.2.2", "Filling and draining the pipeline cost 30 ms.", "wrong",
        "If the times are those of a stage, the number in the report's own section 5.3 is right, 130 ms; if they are those of the whole "
        "model, the right number is half as large.",
        printed=(30,), unit="ms", labs=(LAB_3, LAB_8), fault="false statement",
    ),
    Claim(
        89, REPORT, "section 7.2.2", "Overheads of 30, 40, 5 to 10 and 2 to 3 ms are 75 to 85 ms together.", "depends",
        "The printed parts add up to 77 to 83 ms, but if filling and draining take 130 or 65 ms (claim 50), the sum is 177 to 183 or 112 "
        "to 118 ms.",
        printed=((75, 85),), unit="ms", labs=(LAB_3, LAB_8),
    ),
    Claim(
        51, REPORT, "section 7.2.2", "The expected overhead was 7 % of a step and the observed one is 16 %, because of Python's lock.",
        "wrong",
        "The bubble and the all-reduce, 13 or 14 % of the observed step and not 7 %, explain all but 24 ms of the observed overhead of 15 "
        "or 16 %, and threads that sleep hold no lock.",
        printed=(7, 16), unit="%", labs=(LAB_3, LAB_8), fault="false reason",
    ),
    Claim(
        52, REPORT, "section 7.2.3", "On real machines a saving of 40 to 50 % of the memory is realistic.", "depends",
        "Against GPipe with 8 microbatches it holds for the activations of the first of 4 stages, those of at most 4 microbatches on any "
        "machine, and fails with 2, 5 or 8 stages; for all memory it holds in some settings against GPipe and against one device, "
        "and fails in most.",
        printed=((40, 50),), unit="%", labs=(LAB_3, LAB_9),
    ),
    Claim(
        92, REPORT, "section 7.2.3", "The simulation saves more than real pipelines, because real pipelines are deeper.",
        "depends",
        "Pipelines with more stages save less with as many microbatches, but just as much with as many microbatches for each stage; a "
        "depth of more than one stage, as the report words it, is no difference, because the simulated pipelines have two.",
        labs=(LAB_3,),
    ),
    Claim(
        133, REPORT, "section 7.2.3", "Adding up the gradients of the microbatches costs memory that the simulation leaves out.", "depends",
        "The simulation counts activations alone; the sum needs no memory of its own if each backward adds to the gradients in place, "
        "and 4 bytes for each parameter if a sum in 32 bits stands beside gradients in 16 bits.",
        sources=("micikevicius2018mixed",),
    ),
    # Deviations and checks: sections 7.3 and 7.4
    Claim(
        83, REPORT, "section 7.3", "The expected speedup is at least 0.9, and the observed 0.82 deviates from it by -8 %.", "depends",
        "The difference is 8 points, but 0.82 is 9 % below 0.9, and the other rows of this table count the deviation in percent of the "
        "expected value; the report also expects 0.85, 0.86, about 1, nearly 4 and 6 to 8.",
        printed=(0.9, -8), unit="(times, %)",
    ),
    Claim(
        84, REPORT, "section 7.3", "The observed share of communication deviates by -73 % from the expected 15 to 20 %.", "wrong",
        "The observed 4.2 % is 72, 76 or 79 % below the lower end, the middle or the upper end of this range.",
        printed=(-73,), unit="%", fault="false statement",
    ),
    Claim(
        85, REPORT, "section 7.3",
        "The saving of memory exceeds the expected 30 to 40 % by 87 %, and the time of a step exceeds the expected time by 2.8 %.",
        "depends",
        "In percent of the expected value the second number is right, and the first holds for the upper end of the range, but for the "
        "lower end it is 150 %; as differences, both numbers are others.",
        printed=(87, 2.8), unit="%",
    ),
    Claim(
        86, REPORT, "section 7.4", "All 8 microbatches pass forward and backward, and the all-reduce follows.", "depends",
        "The orders of section 5.2 have all forwards and backwards, but the printed program has 6 microbatches and its timelines lack "
        "forwards; in both the all-reduce comes last.",
        labs=(LAB_2,),
    ),
    Claim(
        88, REPORT, "section 7.4", "Each microbatch adds 10 units of memory and frees 10 units, and the recorded memory agrees.", "depends",
        "In the orders of section 5.2 nothing is left at the end, but no multiple of 10 is the observed peak of 22 (claim 80), and the log "
        "of the printed program, which counts no memory, frees more than it has added.",
        labs=(LAB_3,),
    ),
    # Conclusions: section 8
    Claim(
        53, REPORT, "section 8.1", "A speedup of 0.82 is unavoidable and agrees with theory.", "wrong",
        "Compared with one GPU that does the same work, theory predicts 2.8 to 3.4, with one GPU that runs 8 microbatches about 1.7, and "
        "with one GPU in 1040 ms, as the report does, 0.86 or more.",
        printed=(0.82,), unit="times", labs=(LAB_6, LAB_8, LAB_9), fault="false reason",
    ),
    Claim(
        54, REPORT, "section 8.3", "Hybrid parallelism makes it possible to train a trillion parameters.", "depends",
        "A model of that size was trained on 3,072 A100s, where groups of 8 GPUs shared each layer; with stages and replicas alone, one "
        "layer and the embeddings need 147.6 GB for weights, gradients and optimiser, which fit only if the replicas share them (FSDP).",
        sources=("narayanan2021megatron", "rajbhandari2020zero"),
    ),
    Claim(
        93, REPORT, "section 8.3", "Training of large models takes days instead of weeks.", "depends",
        "Two weeks on one GPU become less than a week on four, and 7.5 billion parameters need less than two weeks on 128 GPUs; but eight "
        "weeks on one GPU are still more than two on four, and a trillion parameters need twelve weeks on 3,072 GPUs.",
        sources=("narayanan2021megatron",), labs=(LAB_6,),
    ),
    Claim(
        55, REPORT, "section 8.3", "Cloud computing becomes 30 to 40 % cheaper.", "depends",
        "By the report's times it holds only against stages that run one after the other, if the replicas share 8 microbatches; against "
        "GPipe with as much memory GPU time falls by 15 to 24 %, and against replicas alone, GPipe with as many microbatches, one GPU or "
        "four stages by a few percent at most, or it rises.",
        printed=((30, 40),), unit="%", labs=(LAB_6,),
    ),
    # References: section 9
    Claim(
        56, REPORT, "reference 1", "GPipe appeared at MLSys in 2021.", "wrong",
        "GPipe appeared at NeurIPS, two years earlier and under another title.",
        printed=(2021,), sources=("huang2019gpipe",), fault="false statement",
    ),
    Claim(
        57, REPORT, "reference 2", "The paper on Megatron-LM is by Narayanan, Shoukry and Shi, at ACM SIGCOMM.", "wrong",
        "The next authors after Narayanan are Shoeybi and Casper, and the paper appeared at SC.",
        sources=("narayanan2021megatron",), fault="false statement",
    ),
    Claim(
        58, REPORT, "reference 3", "PyTorch Distributed appeared at VLDB in 2021.", "wrong",
        "The paper is in volume 13 of the Proceedings of the VLDB Endowment, number 12.",
        printed=(2021,), sources=("li2020pytorch",), fault="false statement",
    ),
    Claim(
        59, REPORT, "reference 4", "The paper on Horovod has the arXiv number 1802.16579, and its title names PyTorch and MXNet.", "wrong",
        "The paper has another arXiv number, and its title ends with TensorFlow.",
        sources=("sergeev2018horovod",), fault="false statement",
    ),
    Claim(
        60, REPORT, "reference 8", "Rabenseifner's paper is in Lecture Notes in Computer Science 3241.", "wrong",
        "The paper is in volume 3036, the proceedings of ICCS 2004.",
        printed=(3241,), sources=("rabenseifner2004optimization",), fault="false statement",
    ),
    Claim(
        132, REPORT, "reference 9", "The paper on residual networks appeared at the International Conference on Computer Vision.", "wrong",
        "The paper appeared at CVPR, whose letters the report prints beside the name of the other conference.",
        sources=("he2016deep",), fault="false statement",
    ),
)  # fmt: skip
