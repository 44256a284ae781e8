// expect: load=lookUp|FindOrderedHashMap|MapPrototypeGet|Map line=lookUp data=kind:v8 level=DRAM|L3 memory=yes
// A Map of many numbers, looked up by numbers that come in no order.
function lookUp(stock, article) {
  let pieces = 0;
  for (let i = 0; i < 50000; i++) {
    article = (Math.imul(article, 1664525) + 1013904223) >>> 0;
    pieces += stock.get((article >>> 8) % 3000000); // HOT
  }
  return pieces;
}

const stock = new Map();
for (let article = 0; article < 3000000; article++) stock.set(article, article % 50);
let pieces = 0;
const ends = Date.now() + 5000;
for (let round = 1; Date.now() < ends; round++) pieces += lookUp(stock, round * 977);
console.log(pieces > 0);
