sh shut.sh || exit 77
ISTHMUS_STATS=1 isthmus run --site home:2 --site b1:2 ./cuts "$1" "$2" >out 2>err </dev/null &
job=$!
until grep -q begun out; do
    kill -0 $job 2>/dev/null || exit 1
    sleep 0.2
done
sleep 1
nft delete table inet shut
wait $job
