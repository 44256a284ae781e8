// Adds up a field of objects that an array refers to in random order.
function total(items, order) {
  let sum = 0;
  for (let i = 0; i < order.length; i++) {
    const item = items[order[i]];
    sum += item.price * item.count; // waits
  }
  return sum;
}

const items = [], order = [];
for (let i = 0; i < 1000000; i++) items.push({ price: i % 100, count: i % 7, name: null, more: i });
let seed = 3;
for (let i = 0; i < 2000000; i++) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  order.push(seed % items.length);
}
let sum = 0;
for (let round = 0; round < 12; round++) sum += total(items, order);
console.log(sum);
