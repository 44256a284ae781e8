"""What `go tool pprof -raw` prints, as OpenTelemetry's own Protocol Buffers: plain, with lengths in
front, and as JSON. Addresses become stated addresses, as its eBPF profiler has them."""
import re, struct, sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.profiles.v1development import profiles_pb2 as pb

raw, program, name = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else "cpu"
part, samples, locations, mappings = None, [], {}, {}
for line in open(raw):
    head = line.strip()
    if head in ("Samples:", "Locations", "Mappings"):
        part = head
    elif part == "Samples:" and (found := re.match(r"\s*(\d+)\s+(\d+): ([\d ]+)", line)):
        samples.append((int(found[1]), [int(word) for word in found[3].split()]))
    elif part == "Locations" and (found := re.match(r"\s*(\d+): (0x[0-9a-f]+) M=(\d+) (\S+)", line)):
        locations[int(found[1])] = (int(found[2], 16), int(found[3]), found[4])
    elif part == "Mappings" and (found := re.match(r"(\d+): (0x[0-9a-f]+)/(0x[0-9a-f]+)/(0x[0-9a-f]+) (\S*)", line)):
        mappings[int(found[1])] = (int(found[2], 16), int(found[3], 16), int(found[4], 16), found[5])

data = pb.ProfilesData()
words = data.dictionary
texts = {"": 0}
words.string_table.append("")
for table in (words.mapping_table, words.location_table, words.function_table, words.link_table,
              words.attribute_table, words.stack_table):
    table.add()

def text(word):
    if word not in texts:
        texts[word] = len(texts)
        words.string_table.append(word)
    return texts[word]

native = words.attribute_table.add(key_strindex=text("profile.frame.type"))
native.value.string_value = "native"
numbers = {}
for mapping, (start, limit, offset, path) in mappings.items():
    numbers[mapping] = len(words.mapping_table)
    words.mapping_table.add(memory_start=start, memory_limit=limit, file_offset=offset,
                            filename_strindex=text(program if path and path[0] != "[" else path))
placed = {}
for location, (address, mapping, function) in locations.items():
    placed[location] = len(words.location_table)
    entry = words.location_table.add(mapping_index=numbers[mapping], address=address, attribute_indices=[1])
    words.function_table.add(name_strindex=text(function))
    entry.lines.add(function_index=len(words.function_table) - 1)
profile = data.resource_profiles.add().scope_profiles.add().profiles.add()
profile.sample_type.type_strindex = text("samples")
profile.sample_type.unit_strindex = text("count")
profile.period_type.type_strindex = text(kind)
profile.period_type.unit_strindex = text("nanoseconds")
profile.period = 10_000_000
for count, stack in samples:
    words.stack_table.add(location_indices=[placed[location] for location in stack])
    # As the eBPF profiler writes them: a time for each sample, and no value.
    times = [1_700_000_000_000_000_000 + number for number in range(count)]
    profile.samples.add(stack_index=len(words.stack_table) - 1, timestamps_unix_nano=times)
plain = data.SerializeToString()
open(f"{name}.otlp", "wb").write(plain)
open(f"{name}.lengths", "wb").write(struct.pack(">I", len(plain)) + plain)
open(f"{name}.json", "w").write(MessageToJson(data, indent=None) + "\n")
