# Breakpoints in twins, by their names; the stack from there; a step over each; the way out to main.
set pagination off
set confirm off
set print address off
set disassemble-next-line off
set debuginfod enabled off
break 'spin.twin'
run
bt
info symbol $pc
up
info symbol $pc
up 4
info symbol $pc
frame 0
python
import gdb
def name(): return gdb.execute('info symbol $pc', to_string=True).split(' in section')[0].split(' + ')[0].strip()
seen = [name()]
for step in range(400):
    gdb.execute('stepi', to_string=True)
    if name() != seen[-1]: seen.append(name())
    if name() == 'main[twin]': break
print('stepped through', ' '.join(seen))
end
bt
delete
tbreak 'inner.twin'
run
finish
bt
continue
