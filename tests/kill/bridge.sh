#!/bin/bash
# The person's phone: a bridge of the channel `command`. After each start it says all words again, since it does not know which
# ones were taken, and keeps what it is given.
touch in
echo started >>got
tail -n +1 -s 0.02 -f in &
trap 'kill $!' EXIT
while IFS= read -r line; do
  printf '%s\n' "$line" >>got
  [[ $line =~ \"number\":([0-9]+) ]] && printf '{"delivered":%s,"message":"m-%s"}\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[1]}"
done
