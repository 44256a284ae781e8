// expect: load=byScore line=byScore data=kind:v8 level=DRAM|L3 memory=yes
// Players in no order, sorted by a field of theirs.
function byScore(one, other) {
  return one.score - other.score; // HOT
}

const players = [];
let drawn = 1;
for (let i = 0; i < 1200000; i++) {
  drawn = (Math.imul(drawn, 1664525) + 1013904223) >>> 0;
  players.push({ score: (drawn >>> 2) % 1000003, games: i, best: null, last: null });
}
let first = 0;
const ends = Date.now() + 6000;
while (Date.now() < ends) first += players.slice().sort(byScore)[0].games;
console.log(first >= 0);
