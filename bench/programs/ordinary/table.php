<?php
ini_set('memory_limit', '2G');
$table = [];
for ($i = 0; $i < 3000000; $i++) $table[$i * 7919 % 15000017] = $i;
$sum = 0;
for ($i = 0; $i < 10000000; $i++) $sum += $table[$i * 104729 % 15000017] ?? 0;
echo $sum, "\n";
