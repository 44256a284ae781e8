// Reads a typed array of 256 MiB in the random order of another one.
function gather(from, order) {
  let sum = 0;
  for (let i = 0; i < order.length; i++) {
    sum += from[order[i]]; // waits
  }
  return sum;
}

const from = new Float64Array(1 << 25), order = new Int32Array(1 << 22);
let at = 1;
for (let i = 0; i < order.length; i++) {
  at = (Math.imul(at, 1664525) + 1013904223) >>> 0;
  order[i] = at >>> 7;
}
let sum = 0;
for (let round = 0; round < 20; round++) sum += gather(from, order);
console.log(sum);
