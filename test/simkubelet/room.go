package simkubelet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// room keeps what pods hold on nodes. It is not safe for concurrent use.
type room struct {
	capacity, used map[string]amounts
	held           map[string]map[types.UID]amounts
}

func newRoom(nodes []Node) *room {
	r := &room{capacity: map[string]amounts{}, used: map[string]amounts{}, held: map[string]map[types.UID]amounts{}}
	for _, n := range nodes {
		r.capacity[n.Name] = amountsOf(n.allocatable())
		r.held[n.Name] = map[types.UID]amounts{}
	}
	return r
}

// fits reports whether a pod could hold the amount on its node, counting all
// other pods there, and if not why, in the kubelet's words.
func (r *room) fits(node string, uid types.UID, want amounts) (bool, string) {
	used := r.used[node].minus(r.held[node][uid])
	capacity := r.capacity[node]
	if used.cpu+want.cpu > capacity.cpu {
		return false, lacking("cpu", want.cpu, used.cpu, capacity.cpu)
	}
	if used.memory+want.memory > capacity.memory {
		return false, lacking("memory", want.memory, used.memory, capacity.memory)
	}
	return true, ""
}

func lacking(what string, requested, used, capacity int64) string {
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", what, requested, used, capacity)
}

// hold records what a pod holds and reports whether others may gain from it.
func (r *room) hold(node string, uid types.UID, a amounts) (freed bool) {
	before := r.held[node][uid]
	r.held[node][uid] = a
	r.used[node] = r.used[node].minus(before).plus(a)
	return a.cpu < before.cpu || a.memory < before.memory
}

// release forgets a pod.
func (r *room) release(node string, uid types.UID) {
	r.used[node] = r.used[node].minus(r.held[node][uid])
	delete(r.held[node], uid)
}

// choose returns the node with the fewest pods among those where the amount
// fits, or "".
func (r *room) choose(uid types.UID, want amounts) string {
	best := ""
	for node, held := range r.held {
		if ok, _ := r.fits(node, uid, want); !ok {
			continue
		}
		if best == "" || len(held) < len(r.held[best]) || len(held) == len(r.held[best]) && node < best {
			best = node
		}
	}
	return best
}
