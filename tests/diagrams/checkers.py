"""What must hold of files in each format. Each function raises ValueError, or json's or xml's own
error, where something does not."""

import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter, defaultdict, deque
from decimal import Decimal

SVG = "{http://www.w3.org/2000/svg}"


def expect(holds, sentence):
    if not holds:
        raise ValueError(sentence)


# --- programs -------------------------------------------------------------------------------------

PROGRAM = """baton-schedule 1
collective program
algorithm zero_bubble
size 2
input 0
output 0
rank 0
compute 40000 forward 0F0 writes scratch[0:64]
send 1 scratch[0:64]
recv 1 scratch[64:64] lane 1
compute 40000 backward_input 0I0 reads scratch[64:64]
compute 40000 backward_weight 0W0
compute 30000 optimizer AdamW
rank 1
recv 0 scratch[0:64]
compute 40000 forward 1F0 reads scratch[0:64]
compute 80000 backward 1B0 writes scratch[64:64]
send 0 scratch[64:64] lane 1
compute 30000 optimizer AdamW
"""
COMPUTED = ["0F0", "0I0", "0W0", "1B0", "1F0", "AdamW", "AdamW"]  # sorted
CLASSES = ["forward", "backward", "backward by input", "backward by weights", "optimizer"]

# --- SVG ------------------------------------------------------------------------------------------

def arrows(svg):
    """Messages that an SVG shows: (from, to, step of the send, step of the receive)."""
    found = []
    for group in ElementTree.fromstring(svg).iter(SVG + "g"):
        if "arrow" not in group.get("class", "").split():
            continue
        data = {key: int(group.get("data-" + key))
                for key in ("from", "to", "send", "recv", "start", "end")}
        expect(data["start"] < data["end"], f"expected an arrow forward in time, found {data}")
        heads = [path for path in group.iter(SVG + "path") if path.get("class") == "head"]
        expect(len(heads) == 1, f"expected one head of an arrow, found {len(heads)}")
        expect(group.find(SVG + "title") is not None, "expected a tooltip, found none")
        line = next(path for path in group.iter(SVG + "path") if path.get("class") != "head")
        x0, y0, x1, y1 = map(float, re.fullmatch(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)",
                                                 line.get("d")).groups())
        expect(x0 <= x1, f"expected an arrow to the right, found {line.get('d')}")
        expect((y0 < y1) == (data["from"] < data["to"]), f"expected an arrow towards its receiver, "
                                                         f"found {line.get('d')} for {data}")
        found.append((data["from"], data["to"], data["send"], data["recv"]))
    for end, name in (((0, 2), "send"), ((1, 3), "receive")):
        for step, times in Counter(tuple(arrow[i] for i in end) for arrow in found).items():
            expect(times == 1, f"expected one arrow for {name} {step}, found {times}")
    return found


def labels(svg):
    """Texts of labels; none overlaps another."""
    boxes, texts = [], []
    for group in ElementTree.fromstring(svg).iter(SVG + "g"):
        if group.get("class") == "labels":
            texts += [text.text for text in group.iter(SVG + "text")]
            boxes += [tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
                      for rect in group.iter(SVG + "rect")]
    for i, (x, y, w, h) in enumerate(boxes):
        for u, v, a, b in boxes[:i]:
            expect(x + w <= u + .11 or u + a <= x + .11 or y + h <= v + .11 or v + b <= y + .11,
                   f"expected labels apart, found {texts[i]} on another")
    return texts


def critical_path(svg):
    """The steps of the critical path from one rank to another, and all x of it."""
    root = ElementTree.fromstring(svg)
    rows = {float(text.get("y")) - 4.3: int(text.text.removeprefix("rank "))
            for text in root.iter(SVG + "text") if text.get("class") == "rank"}
    line = next(path.get("d") for path in root.iter(SVG + "path") if path.get("class") == "critical")
    steps, times, before = set(), [], None
    for how, x, y in re.findall(r"([ML])([\d.]+) ([\d.]+)", line):
        rank = rows[min(rows, key=lambda row: abs(row - float(y)))]
        expect(how == "M" or before is not None, f"expected a path that begins, found {line}")
        if how == "L" and rank != before:
            steps.add((before, rank))
        before = rank
        times.append(float(x))
    return steps, times


# --- draw.io --------------------------------------------------------------------------------------

def drawio_edges(text):
    """(label, rank of the source, rank of the target) of each edge; every reference resolves."""
    root = ElementTree.fromstring(text)
    expect(root.tag == "mxfile", f"expected mxfile, found {root.tag}")
    cells = list(root.find("diagram/mxGraphModel/root"))
    by_id = {cell.get("id"): cell for cell in cells}
    expect(len(by_id) == len(cells), "expected ids that differ, found some twice")
    expect([cell.get("id") for cell in cells[:2]] == ["0", "1"], "expected cells 0 and 1 first")
    edges = []
    for cell in cells[1:]:
        expect(cell.get("parent") in by_id, f"expected a parent, found {cell.get('parent')}")
        if cell.get("vertex"):
            expect(cell.find("mxGeometry") is not None, "expected a shape's geometry, found none")
        if cell.get("edge"):
            ends = [by_id.get(cell.get(end)) for end in ("source", "target")]
            expect(None not in ends, f"expected an edge between shapes, found {cell.attrib}")
            edges.append((cell.get("value"), *(end.get("parent") for end in ends)))
    return edges


# --- Chrome trace ---------------------------------------------------------------------------------

def trace(text):
    """Slices nest in each lane; arrows pair, by ids of their own, and each end lies on a slice.
    Returns the trace and its arrows: (pid, pid) by id."""
    parsed = json.loads(text, parse_float=Decimal)
    for number in re.findall(r'"(?:ts|dur)":([^,}]*)', text):
        expect(re.fullmatch(r"\d+\.\d{3}", number), f"expected three decimals, found {number}")
    lanes, starts, ends, names = defaultdict(list), {}, {}, {}
    for event in parsed["traceEvents"]:
        lane = event["pid"], event.get("tid")
        if event["ph"] == "X":
            expect(event["dur"] > 0, f"expected a slice of some length, found {event}")
            lanes[lane].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif event["ph"] in "sf":
            ids = starts if event["ph"] == "s" else ends
            expect(event["id"] not in ids, f"expected ids that differ, found {event['id']} twice")
            expect(event["ph"] == "s" or event.get("bp") == "e", "expected an arrow's end to be "
                                                                 "bound to what encloses it")
            ids[event["id"]] = event
        elif event["ph"] == "M" and event["name"] == "process_name":
            names[event["pid"]] = event["args"]["name"]
    for lane, slices in lanes.items():
        open_ends = []
        for start, end, name in sorted(slices, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            expect(not open_ends or end <= open_ends[-1],
                   f"expected slices that nest, found {name} in lane {lane} to {end}, past "
                   f"{open_ends and open_ends[-1]}")
            open_ends.append(end)
    expect(starts.keys() == ends.keys(),
           f"expected arrows with two ends, found {starts.keys() ^ ends.keys()} with one")
    for ids, short in ((starts, "injection"), (ends, "arrival")):
        for event in ids.values():
            on = [name for start, end, name in lanes[event["pid"], event["tid"]]
                  if start <= event["ts"] <= end]
            expect(short in on, f"expected an arrow on an {short}, found it on {on}")
    for key, start in starts.items():
        expect(start["ts"] <= ends[key]["ts"], f"expected an arrow forward in time, found {start}")
    for pid, _ in lanes:
        expect(pid in names, f"expected a name of process {pid}, found none")
    expect(len({len(name) for name in names.values()}) <= 1, f"expected names of one length, "
                                                             f"found {names}")
    return parsed, {key: (start["pid"], ends[key]["pid"]) for key, start in starts.items()}


# --- GOAL -----------------------------------------------------------------------------------------

def goal(text):
    """The grammar of LogGOPSim's input; labels resolve, sends and receives match by rank, tag and
    size, and all can run. Returns the number of messages."""
    lines = text.splitlines()
    head = re.fullmatch(r"num_ranks (\d+)", lines[0])
    expect(head, f"expected num_ranks N, found {lines[0]}")
    sends, recvs, ranks, rank = Counter(), Counter(), set(), None
    for line in filter(None, lines[1:]):
        if opened := re.fullmatch(r"rank (\d+) \{", line):
            expect(rank is None, f"expected a closed rank, found {line}")
            rank, known, before = int(opened[1]), set(), 0
            expect(rank not in ranks, f"expected rank {rank} once")
            ranks.add(rank)
        elif line == "}":
            expect(rank is not None, "expected an open rank, found }")
            rank = None
        elif done := re.fullmatch(r"(l\d+): (?:(send|recv) (\d+)b (to|from) (\d+) tag (\d+)|"
                                  r"calc \d+)", line):
            expect(done[1] not in known, f"expected labels that differ, found {done[1]} twice")
            known.add(done[1])
            if done[2]:
                expect((done[2] == "send") == (done[4] == "to"), f"expected send to or recv from, "
                                                                 f"found {line}")
                peer = int(done[5])
                key = (rank, peer) if done[2] == "send" else (peer, rank)
                (sends if done[2] == "send" else recvs)[*key, done[3], done[6]] += 1
        else:
            needs = re.fullmatch(r"(l\d+) requires (l\d+)", line)
            expect(needs and rank is not None, f"expected an operation, found {line}")
            expect({needs[1], needs[2]} <= known and needs[1] != needs[2],
                   f"expected labels of earlier lines, found {line}")
    expect(rank is None, "expected the last rank to be closed")
    expect(ranks == set(range(int(head[1]))), f"expected {head[1]} ranks, found {sorted(ranks)}")
    expect(sends == recvs, f"expected sends and receives that match, found {sends - recvs} and "
                           f"{recvs - sends}")
    expect(all(times == 1 for times in sends.values()), "expected tags that differ")
    return sum(sends.values())


# --- MSCCL ----------------------------------------------------------------------------------------

STEP = {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}


def msccl(text):
    """The form of MSCCL's XML; then runs it on sets of (rank, chunk of its input). Returns, for
    each GPU, what its buffers hold in the end."""
    root = ElementTree.fromstring(text)
    expect(root.tag == "algo", f"expected algo, found {root.tag}")
    for name in ("name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace"):
        expect(name in root.attrib, f"expected {name} of the algorithm, found {root.attrib}")
    gpus = list(root)
    expect(len(gpus) == int(root.get("ngpus")), f"expected {root.get('ngpus')} GPUs, found "
                                                f"{len(gpus)}")
    memory, blocks = {}, {}
    for rank, gpu in enumerate(gpus):
        expect(int(gpu.get("id")) == rank, f"expected GPU {rank}, found {gpu.get('id')}")
        for buffer in "ios":
            for chunk in range(int(gpu.get(buffer + "_chunks"))):
                memory[rank, buffer, chunk] = Counter({(rank, chunk): 1}) if buffer == "i" else None
        used = Counter()
        for number, block in enumerate(gpu):
            expect(int(block.get("id")) == number, "expected thread blocks in order")
            for way in ("send", "recv"):
                if block.get(way) != "-1":
                    used[way, block.get(way), block.get("chan")] += 1
            for place, step in enumerate(block):
                expect(set(step.attrib) - {"left"} == STEP, f"expected {STEP}, found {step.attrib}")
                expect(int(step.get("s")) == place, "expected steps in order")
            blocks[rank, number] = block
        expect(all(times == 1 for times in used.values()),
               f"expected one thread block for each connection, found {used}")
    run(blocks, memory)
    return memory


def run(blocks, memory):
    done = dict.fromkeys(blocks, 0)
    wires = defaultdict(deque)

    def step_runs(rank, block, step):
        kind = step.get("type")
        if step.get("depid") != "-1":
            on = rank, int(step.get("depid"))
            waited = blocks[on][int(step.get("deps"))]
            expect(waited.get("hasdep") == "1", "expected hasdep of what is waited for")
            if done[on] <= int(step.get("deps")):
                return False
        count = int(step.get("cnt"))

        def at(which, i):
            place = rank, step.get(which + "buf"), int(step.get(which + "off")) + i
            expect(place in memory, f"expected a chunk within its buffer, found {place}")
            return place

        if kind == "r":
            wire = wires[int(block.get("recv")), rank, block.get("chan")]
            if not wire:
                return False
            sent = wire.popleft()
            expect(len(sent) == count, f"expected {count} chunks, found {len(sent)}")
            for i, value in enumerate(sent):
                memory[at("dst", i)] = value
        elif kind == "s":
            values = [memory[at("src", i)] for i in range(count)]
            wires[rank, int(block.get("send")), block.get("chan")].append(values)
        elif kind in ("cpy", "re"):
            for i in range(count):
                value = memory[at("src", i)]
                expect(value is not None, f"expected data to {kind}, found none")
                if kind == "re":
                    expect(memory[at("dst", i)] is not None, "expected data to reduce into")
                    value = value + memory[at("dst", i)]
                memory[at("dst", i)] = value
        else:
            expect(kind == "nop", f"expected a step of a known type, found {kind}")
        return True

    moved = True
    while moved:
        moved = False
        for key, block in blocks.items():
            while done[key] < len(block) and step_runs(key[0], block, block[done[key]]):
                done[key] += 1
                moved = True
    expect(all(done[key] == len(block) for key, block in blocks.items()),
           "expected all steps to run, found some that wait for ever")
    expect(not any(wires.values()), "expected all messages to be received")


# --- PNG ------------------------------------------------------------------------------------------

def colours(png):
    """How often each colour occurs in an 8-bit RGB or RGBA picture."""
    expect(png[:8] == b"\x89PNG\r\n\x1a\n", "expected a PNG")
    at, data = 8, b""
    while at < len(png):
        length, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        body = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height = (int.from_bytes(body[i:i + 4], "big") for i in (0, 4))
            expect(body[8] == 8 and body[9] in (2, 6), "expected 8-bit colours")
            size = 3 if body[9] == 2 else 4
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, row, found = zlib.decompress(data), bytearray(width * size), Counter()
    for y in range(height):
        start = y * (width * size + 1)
        filtered, line = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        if filtered:
            for i in range(len(line)):
                a = line[i - size] if i >= size else 0
                b, c = row[i], row[i - size] if i >= size else 0
                if filtered == 4:
                    p = a + b - c
                    near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                else:
                    near = (a, b, (a + b) // 2)[filtered - 1]
                line[i] = (line[i] + near) & 255
        row = line
        found.update(bytes(line[i:i + 3]) for i in range(0, len(line), size))
    return found


def not_blank(png):
    found = colours(png)
    total, most = sum(found.values()), found.most_common(1)[0][1]
    expect(len(found) >= 16 and most < 0.995 * total,
           f"expected a picture, found {len(found)} colours, one of them {most} of {total} times")
