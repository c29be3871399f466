package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Field case B46: who wants recommendations gets recommendations, and nothing
// else in the cluster is touched, whatever the policy says of updates.
func TestRecommendationsAreAllThatIsWritten(t *testing.T) {
	b := newBed(t)
	b.asUser("controller-under-audit")
	b.deployment("web", "100m", "64Mi")
	pod := b.pod("web", now.Add(-time.Hour))
	for range 5 {
		b.cycle(time.Minute)
	}
	if writes := b.writes(); len(writes) != 0 {
		t.Errorf("without a policy, what was written is %v", writes)
	}

	b.source.set(func(s *source) { s.cpu, s.memory = level(2), level(4<<30) })
	b.policy("web", "web", func(p *v1alpha1.PolicySpec) {
		p.Mode = v1alpha1.ModeRecommend
		p.Startup = &v1alpha1.Startup{CPU: v1alpha1.StartupCPU{FactorPercent: ptr.To(int32(300))}}
	})
	var fresh *corev1.Pod
	for i := range 50 {
		switch i {
		case 25:
			b.kill(pod, "64Mi", b.clock.Now().Add(-time.Second))
		case 30:
			fresh = b.sibling(pod)
		}
		b.cycle(time.Minute)
	}
	b.wantCPU("web", "2")
	want := []string{
		"create verticalrecommendations", "update verticalpolicies/status", "update verticalrecommendations/status",
	}
	if got := b.writes(); !slices.Equal(got, want) {
		t.Errorf("what was written is %v, want %v", got, want)
	}
	for what, p := range map[string]*corev1.Pod{"the pod": pod, "the new pod": fresh} {
		b.get(p)
		if cpu := p.Spec.Containers[0].Resources.Requests.Cpu(); cpu.String() != "100m" || len(p.Annotations) > 0 {
			t.Errorf("%s asks for %s of CPU and has annotations %v, want what its template says and none", what, cpu, p.Annotations)
		}
	}
}

// writes are the kinds of writes that the bed's user made, each once, sorted.
func (b *bed) writes() []string {
	b.Helper()
	text, err := os.ReadFile(shared.cluster.AuditLogPath())
	if err != nil {
		b.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		var e struct {
			Verb      string
			UserAgent string
			ObjectRef struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.Fatal(err)
		}
		if e.UserAgent != b.agent || slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			continue
		}
		write := fmt.Sprintf("%s %s", e.Verb, e.ObjectRef.Resource)
		if e.ObjectRef.Subresource != "" {
			write += "/" + e.ObjectRef.Subresource
		}
		if !slices.Contains(all, write) {
			all = append(all, write)
		}
	}
	slices.Sort(all)
	return all
}
