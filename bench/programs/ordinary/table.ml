let () =
  let table = Hashtbl.create 16 in
  for i = 1 to 1000000 do Hashtbl.replace table (i * 7919 mod 15000017) i done;
  let sum = ref 0 in
  for i = 1 to 2000000 do
    match Hashtbl.find_opt table (i * 104729 mod 15000017) with
    | Some found -> sum := !sum + found
    | None -> ()
  done;
  Printf.printf "%d\n" !sum
