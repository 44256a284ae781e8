# The life of a repository: commits, branches, merges with conflicts, rebases, tags, stashes, packs,
# bundles, repairs.
#: program /usr/bin/git
#: program /usr/lib/git-core/git
#: needs git git
#: quick
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@d GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
now=1700000000
tick() { now=$((now + 60)); export GIT_AUTHOR_DATE="$now +0100" GIT_COMMITTER_DATE="$now +0100"; }
tick
git config --global init.defaultBranch main; git config --global gc.auto 0; git config --global advice.detachedHead false
git config --global pack.threads 1; git config --global diff.renames true
git init -q repo && cd repo || exit 1
for i in $(seq 1 25); do
    tick; mkdir -p "d$((i % 4))"; { seq "$i" $((i + 60)); head -$((i * 10)) /usr/share/common-licenses/GPL-3; } >"d$((i % 4))/f$((i % 7)).txt"
    git add -A && git commit -q -m "commit $i" -m "body of $i"
done
git log --oneline --stat -5; git log --format='%h %an %at %s' | head -30; git rev-parse HEAD
tick; git checkout -q -b topic HEAD~8; sed -i '30s/.*/topic line/' d1/f1.txt; git commit -qam topic; tick; git mv d2 moved; git commit -qm move
tick; echo other >>d3/f3.txt; git commit -qam third
git checkout -q main; tick; sed -i '30s/.*/main line/' d1/f1.txt; git commit -qam "on main"
tick; git merge topic; echo "merge $?"; git status --short | head -20; git diff | head -40; git checkout --theirs . ; git add -A; git commit -q -m merged; git log --graph --oneline | head -20
tick; git checkout -q -b rebased topic; tick; git rebase -q main~1 2>&1; git status | head -12; git rebase --skip -q 2>&1; git rebase --abort 2>&1; git log --oneline -4
tick; git checkout -q main; git cherry-pick -x topic~2 2>&1 | head -4; git cherry-pick --abort 2>&1
tick; git revert --no-edit HEAD~3 2>&1 | grep -v Date; git tag -a v1 -m one; git describe; git show v1 --stat | head -20
echo dirt >>d1/f1.txt; git stash -q; git stash list; git stash pop 2>&1 | head -3; git checkout -q .
git blame -s d1/f1.txt | head -40; git diff --stat HEAD~10; git diff --word-diff HEAD~3 -- d1 | head -30; git log -S'topic line' --oneline; git grep -n -e 'freedom' --and -e 'share' | head
git bisect start -q HEAD HEAD~15; git bisect run sh -c 'test "$(wc -l <d1/f1.txt)" -lt 200' 2>&1 | tail -5; git bisect reset -q
tick; git gc -q --aggressive --prune=now; git count-objects -v | grep -v size; git verify-pack -v .git/objects/pack/*.idx | sort | head -20; git fsck --full --strict; echo "fsck $?"
git bundle create -q ../all.bundle --all; git bundle verify ../all.bundle; cd .. && git clone -q all.bundle copy 2>&1; cd copy && git log -1 --format=%H && git ls-tree -r HEAD | head -30
git clone -q --depth 3 "file://$HOME/repo" ../shallow 2>&1; git -C ../shallow log --oneline; git -C ../repo archive --format=tar HEAD | sha256sum; git -C ../repo archive --format=tar.gz HEAD | gzip -dc | sha256sum
git format-patch -q -3 -o ../patches HEAD; ls ../patches; git checkout -q -b patched HEAD~6; git am -q ../patches/0001* 2>&1 | head -5; git am --abort 2>&1
git worktree add -q ../tree v1 2>&1; git worktree list | sed "s|$HOME||"; git submodule status; git notes add -m note HEAD; git log -1 --format=%N; git shortlog -sn; git reflog | head -10
tick; echo new >>d0/f0.txt; git commit -qam push; git push -q "file://$HOME/repo" HEAD:refs/heads/pushed 2>&1; git -C ../repo log -1 --oneline pushed
git fast-export --all | sha256sum; git init -q ../imported; git fast-export --all | git -C ../imported fast-import --quiet; git -C ../imported rev-parse v1^{commit} main
f=$(find ../imported/.git/objects -name '*.pack' | head -1); if [ -n "$f" ]; then chmod u+w "$f"; printf X | dd of="$f" bs=1 seek=3000 conv=notrunc status=none; git -C ../imported fsck 2>&1 | sed 's/pack-[0-9a-f]*/pack/' | head -4; fi
git rev-list --all --count; git for-each-ref; git ls-remote "file://$HOME/repo" | head; git log --format=%G? -1; git hash-object -w --stdin </usr/bin/bash | wc -c
