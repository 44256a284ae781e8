# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_gleaner_global_optspecs
    string join \n json q/quiet h/help V/version
end

function __fish_gleaner_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_gleaner_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_gleaner_using_subcommand
    set -l cmd (__fish_gleaner_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c gleaner -n "__fish_gleaner_needs_command" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_needs_command" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_needs_command" -s h -l help -d 'Print help'
complete -c gleaner -n "__fish_gleaner_needs_command" -s V -l version -d 'Print version'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "tour" -d 'Watch a program wait for memory, find out why, and try what helps: two to three minutes, and a page that tells it'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "doctor" -d 'Show what works on this host, what does not and why, and what would help'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "measure" -d 'Measure this machine: latency and size of each cache level, TLBs, memory-level parallelism, bandwidth and more'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "probe" -d 'Measure in ten seconds what gives away faults in a fleet: slow memory, prefetchers or huge pages that are off, noisy neighbours'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "profile" -d 'Find the loads that a program waits for, and the data that they read'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "harvest" -d 'Run a program, and other programs in its memory stalls'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "twin" -d 'Rewrite a program or library so that every function has a twin: a second copy, beside the untouched original'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "proof" -d 'Check that a rewritten file is its original plus twins, and nothing else'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "annotate" -d 'Show the code of functions with what each instruction cost'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "show" -d 'Show a record, or a part of it'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "export" -d 'Write records in the formats of other tools'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "report" -d 'Write records as one HTML page: figures with intervals, tables, and the records themselves'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "model" -d 'Fit levels of the memory hierarchy, with sizes and costs, to a machine record'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "compare" -d 'Compare records: what became slower, what became faster, what is the same'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "predict" -d 'Predict how long an access pattern takes on a measured machine'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "reproduce" -d 'Test the claims of a published document on this machine'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "help" -d 'Show this help, or the help of a verb'
complete -c gleaner -n "__fish_gleaner_needs_command" -f -a "generate" -d 'Write man pages or shell completions into a directory'
complete -c gleaner -n "__fish_gleaner_using_subcommand tour" -l directory -d 'Write the page, the records and the programs into this directory, which is created if necessary' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand tour" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand tour" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand tour" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand doctor" -l root -d 'Show another machine: a directory laid out like /, or a file written by --record' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand doctor" -l record -d 'Write what was read to FILE (\'-\' for standard output), to show it elsewhere with --root; the file has no host name, serial numbers or command lines, but it has the paths of control groups' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand doctor" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand doctor" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l cpu -d 'Measure on this CPU [default: the last one that no other \'gleaner measure\' uses]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l seed -d 'Seed of the random choices, to repeat those of an earlier run (its record has the seed)' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l format -d 'How to print the results' -r -f -a "text\t'A summary'
lat_mem_rd\t'Two columns, as lmbench\'s lat_mem_rd prints them: size in MB and latency in ns'
csv\t'Every point of every experiment'"
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l csv -d 'Also write each experiment\'s points as CSV into this directory' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -s o -l output -d 'Write the record to this file (\'-\' for standard output); a run that is stopped does not replace the record of a complete run, but writes NAME.interrupted.json beside it' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l repeat -d 'Measure this number of times, for \'gleaner compare\': -o names a directory, which gets a record for each run' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l max-memory -d 'Use no more memory than this, for example 512M' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l quick -d 'Measure fewer points, and each less often: everything takes a minute'
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l thorough -d 'Measure more points, and each more often, for narrower intervals: everything takes twenty minutes'
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l dry-run -d 'Say what would be measured, where, how long it takes and how much memory it may use, and measure nothing'
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand measure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l budget -d 'How long it may take, from 3s to 10min' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l jitter -d 'Wait a random part of this time first, so that a thousand hosts do not start at once [default with --jitter alone: 60s]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l name -d 'The host\'s name in the record [default: as the system says]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l expect -d 'Compare the figures with the limits in this file, such as \'memory_latency <= 130 ns\' or \'bandwidth_all >= 280 GB/s\', one a line' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -s o -l output -d 'Write the record to this file (\'-\' for standard output), or as NAME-TIME.json into this directory' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l cpu -d 'Measure on this CPU [default: the last one that no other gleaner uses]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l max-memory -d 'Use no more memory than this, for example 512M' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand probe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l backend -d 'How to sample' -r -f -a "auto\t'The clock, since only samples of time tell which loads the core waits for; or else signals'
clock\t'A timer of CPU time, by the kernel\'s performance events'
signal\t'A timer for each thread and a preloaded library that takes its signals: where events are forbidden, as in most containers. At most one sample for each tick of the kernel'
pebs\t'Loads that an Intel core samples, with their latency, level and address'
ibs\t'Operations that an AMD core samples, with what their misses took'"
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l pid -d 'Attach to this process and all of its threads, until it ends, --duration is over, or Ctrl-C' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l perf-data -d 'Read samples that perf record took (\'-\' for standard input)' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l frequency -d 'Samples a second of each thread\'s CPU time [default: as many as --budget allows, at most 4000]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l budget -d 'Let profiling take at most this part of the program\'s time: a third of it for the samples, whose cost on this machine is measured first' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l duration -d 'Stop sampling after this time, for example 10s; the program runs on' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l from -d 'Leave out what was sampled before this time of the run, or since attaching' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l to -d 'Leave out what was sampled after this time of the run; with --pid, end then' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l pairs -d 'Pairs of runs for each change' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l machine -d 'Model the caches of this machine record [default: the one that \'gleaner measure\' left, if it is of this machine; sizes that it lacks are as the host claims them]' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l on -d 'Model the caches of another machine, by its record' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l if -d 'Change the modelled machine: l1=SIZE, l2=SIZE, l3=SIZE, or pages=2M; may be given several times' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l top -d 'How many loads, functions and objects the summary shows' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -s o -l output -d 'Write the record to this file (\'-\' for standard output; then the program\'s standard output goes to standard error)' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l no-stacks -d 'Leave out who calls what: no stacks are copied'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l no-allocations -d 'Leave out where memory is allocated: no library is preloaded into the program'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l no-probes -d 'Leave out how long loads take: no breakpoints are set'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l try -d 'Then run the program again, with and without changes that the profile proposes and that need no source: huge pages, prefetches ahead of loads, cache lines of their own for what threads allocate, other CPUs; and say whether it is faster'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l trace -d 'Then run the program again with all of its loads and stores through a model of the caches: which level serves each, and what memory moves over time'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand profile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l scavenger -d 'A program to run in the primary\'s stalls, with its arguments, quoted as for a shell; may be given several times' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l scavengers -d 'Several copies of one scavenger: \'12 x CMD\'; at most 64 in all' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l scavenger-out -d 'Where the scavengers\' output goes: a file for all of them, or a directory (an existing one, or a name that ends in \'/\') with a file for each; without this option it is discarded' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l ring -d 'Most scavengers that share one thread of the primary at once (its guests) [default: as many as can run while one miss is served]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l home-cpus -d 'CPUs for scavengers while they are off the primary, as 0-3,8 [default: the primary\'s]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l max-slowdown -d 'How much slower the primary may become: the rate of its yields with guests, against the rate without, measured while it runs' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l max-absence -d 'How long the primary may be off its thread each time it yields: a target, not a hard limit; a guest that repeatedly runs longer is sent back to its own thread for a while' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l machine -d 'Costs of misses and yields on this machine, as \'gleaner measure -o FILE\' writes them [default: the record that \'gleaner measure\' leaves in the user\'s cache directory; without one, what plans need is measured in two seconds, once]' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l profile -d 'Choose sites by what \'gleaner profile -o FILE\' saw these programs wait for; may be given several times, for the primary and for scavengers' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l plan -d 'Use a plan made by --dry-run --record FILE instead of making one' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l record -d 'Write the run record to this file; with --dry-run, the plan' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l libraries -d 'Shared libraries to rewrite too: names, as libz or libz.so.1, separated by commas, \'all\' or \'none\' [default: all libraries of scavengers, none of the primary]' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l library-time -d 'How long rewriting the scavengers\' libraries may delay the start; those that are left run as they are, and further launches go on with them. libc\'s and the C++ library are always ready; --dry-run and --libraries take the time for all' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l choose -d 'Which loads become yield sites' -r -f -a "paying\t'Loads whose yield is expected to gain more than it costs'
chases\t'Of those, pointer chases only: the address comes from the same load, one iteration earlier'
every-load\t'Every load in a loop'"
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l least-gain -d 'Choose a site only if its expected gain is more than this number of cycles per execution' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l most-sites -d 'Choose at most this many sites of each file: those in the deepest loops' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l exclude -d 'Do not choose the load at this address of the file, as --dry-run prints it; may be given several times' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l without -d 'Leave out one optimisation or bound, to measure what it gains; may be given several times' -r -f -a "bounds\t'Scavengers yield at their sites only; they may exceed --max-absence'
live-registers\t'Each yield saves all registers, not only those that are live'
hoisted-saves\t'Registers that a loop does not change are saved at each of its yields, not once before it'
sunk-restores\t'Registers that a scavenger\'s loop does not use are loaded at each yield, not once behind it'
load-store-balance\t'Registers whose slots hold them are not saved again to balance a yield\'s loads and stores'"
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l stay-aboard -d 'Keep scavengers in the primary\'s stalls even where a CPU is idle and they would run faster there; for measuring what stalls are worth, or to leave idle CPUs to others'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l assume-costs -d 'Assume the costs of a common machine, rather than using or measuring those of this one'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l dry-run -d 'Make the plan, explain it, and run nothing'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l live -d 'Show a status line on the terminal: how many guests are aboard, and how much they slow the primary down'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l no-cache -d 'Ignore the cache of analysed and rewritten programs, and do not write to it'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l siblings -d 'Let the primary\'s own threads run in each other\'s stalls; for programs with more runnable threads than CPUs'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l together -d 'Run several programs together in each other\'s stalls, none of them before the others: each argument is a command, quoted as for a shell, or \'N x CMD\' for several copies'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l no-coalescing -d 'Give each load its own yield; by default one yield prefetches for several neighbouring loads'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l no-spins -d 'Do not let guests run where the primary busy-waits (spins on memory, or on the clock)'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand harvest" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l prefetch -d 'Prefetch this number of bytes ahead of the load at this address, in the file; functions without such a load have no twin' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l every-load -d 'Yield before every load, to test yields; \'all\' includes loads from the stack and from fixed addresses' -r -f -a "usual\t'Loads whose address is computed'
all\t'All loads'"
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l plan -d 'Yield at the sites of this plan, which must be for this file (same build id)' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l role -d 'The program\'s role in a harvest [default: as the plan says; without a plan, primary]' -r -f -a "primary\t'Other programs run in its memory stalls'
scavenger\t'It runs in the memory stalls of another program'
sibling\t'Its threads run in each other\'s memory stalls'"
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l quantum -d 'Cycles between two yields of a scavenger, by static estimate' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l debug -d 'Separate debug information of the binary, for its symbols' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -s o -l output -d 'Write the rewritten file here' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l identity -d 'Twins are plain copies, without yields'
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l poison -d 'Before every instruction, fill registers and flags that are dead with garbage, to test the liveness analysis'
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand twin" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand proof" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand proof" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand proof" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand annotate" -l least -d 'Show only code near instructions that cost at least this share of the CPU time, in percent' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand annotate" -l top -d 'How many functions are shown' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand annotate" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand annotate" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand annotate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand show" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand show" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -l format -d 'The format' -r -f -a "pprof\t'For pprof (profile.proto, compressed)'
folded\t'One line a stack, weighed by samples: for flamegraph.pl and inferno'
speedscope\t'For speedscope (JSON)'
firefox\t'For the Firefox Profiler (JSON)'
callgrind\t'For callgrind_annotate and KCachegrind'
memprof\t'For llvm-profdata: samples that waited for each global variable, and what was allocated at which calls (YAML)'
csv-loads\t'The loads as comma-separated values'
csv-functions\t'The functions as comma-separated values'
csv-objects\t'The data as comma-separated values'
csv-lines\t'The cache lines that threads share, by offset and thread, as comma-separated values'
jsonl\t'All figures of any records as rows, one a line (JSON)'
prometheus\t'Headlines of any records, as gauges for Prometheus'
hwloc\t'Topology and memory attributes of a machine record, for hwloc (XML)'"
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -l parquet -d 'Add tables of all records to this directory, as Parquet in partitions by date; records that are there already are left out' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -s o -l output -d 'Write to this file [default: standard output]' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -l weight -d 'What stacks are weighed by; formats that hold both show this one first [default: time]' -r -f -a "time\t'CPU time'
stall\t'Time spent waiting for loads'"
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand report" -s o -l output -d 'Write to this file (\'-\' for standard output) [default: the first record\'s name, with .html]' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand report" -l svg -d 'Write each figure to this directory, too, as SVG' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand report" -l share -d 'Leave out names of hosts and users, and home directories, of the page and its records'
complete -c gleaner -n "__fish_gleaner_using_subcommand report" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand report" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand model" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand model" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand model" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l ab -d 'Measure two settings in turns, and compare them: each is text with arguments of \'gleaner measure\', variables as NAME=VALUE, and thp=never for small pages alone' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l repeat -d 'With --ab: runs of each setting' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -s o -l output -d 'With --ab: keep the records in this directory, below \'a\' and \'b\'' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l min-effect -d 'The smallest effect that matters' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l fail-on -d 'Exit with 4 if a headline figure regressed, with 5 if one is inconclusive' -r -f -a "regression\t'A headline figure became worse'
inconclusive\t'Of a headline figure it is not known, or a side has one run'"
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l format -d 'How to print the result' -r -f -a "text\t'Tables'
md\t'Markdown, for a pull request or a ticket'
html\t'One HTML page that needs no network'
json\t'Everything, for scripts (the same as --json)'"
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l seed -d 'Seed of the random draws' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand predict" -l machine -d 'A record of \'gleaner measure\' (\'-\' for standard input) [default: the one that \'gleaner measure\' left in ~/.cache/gleaner/machine.json]; given several times: runs on one machine, whose differences widen the intervals' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand predict" -l on -d 'Predict for this machine, too, and compare' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand predict" -l if -d 'Where an access says nothing itself: pages=KIND, mlp=COUNT, n=COUNT, remote=SHARE' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand predict" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand predict" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand predict" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -l cpu -d 'Measure on this CPU' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -l seed -d 'Seed of the random choices, to repeat those of an earlier run' -r
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -l machine -d 'Take the figures of the machine from this record, and do not measure them; programs are run all the same' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -s o -l output -d 'Write the record to this file (\'-\' for standard output)' -r -F
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -l list -d 'List the claims, and measure nothing'
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -l quick -d 'Measure fewer points, and each less often'
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand reproduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gleaner -n "__fish_gleaner_using_subcommand help" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand help" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand help" -s h -l help -d 'Print help'
complete -c gleaner -n "__fish_gleaner_using_subcommand generate" -l json -d 'Write the result to standard output as JSON, and text to standard error'
complete -c gleaner -n "__fish_gleaner_using_subcommand generate" -s q -l quiet -d 'Print no progress and no remarks, only the result and errors'
complete -c gleaner -n "__fish_gleaner_using_subcommand generate" -s h -l help -d 'Print help'
