// Goes round a list of a million objects in random order.
function chase(at, steps) {
  while (steps-- > 0) {
    at = at.next; // waits
  }
  return at;
}

const count = 1 << 20, nodes = [];
for (let i = 0; i < count; i++) nodes.push({ next: null, value: i, rest: [i, i] });
let seed = 7;
for (let i = count - 1; i > 0; i--) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  const other = seed % i, node = nodes[i];
  nodes[i] = nodes[other];
  nodes[other] = node;
}
for (let i = 0; i < count; i++) nodes[i].next = nodes[(i + 1) % count];
let at = nodes[0];
for (let round = 0; round < 120; round++) at = chase(at, 50000);
console.log(at.value);
