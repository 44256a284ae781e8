// Looks up keys in an unbalanced tree.
class Node {
  constructor(key) {
    this.key = key;
    this.left = null;
    this.right = null;
  }
}

function insert(root, key) {
  const added = new Node(key);
  if (!root) return added;
  let at = root;
  for (;;) {
    const next = key < at.key ? at.left : at.right; // waits
    if (!next) { // waits
      if (key < at.key) at.left = added;
      else at.right = added;
      return root;
    }
    at = next;
  }
}

function walk(root, key) {
  let at = root, steps = 0;
  while (at && at.key !== key) { // waits
    at = key < at.key ? at.left : at.right; // waits
    steps++;
  }
  return steps;
}

let seed = 12345;
function random() {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x3fffffff;
  return seed;
}

const count = 600000, keys = [];
let root = null;
for (let i = 0; i < count; i++) {
  keys.push(random());
  root = insert(root, keys[i]); // waits
}
let sum = 0;
for (let i = 0; i < count; i++) sum += walk(root, keys[random() % count]);
console.log(sum);
