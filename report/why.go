package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// Why is what is done with one pod now, and why.
type Why struct {
	Input    updater.Input
	Decision updater.Decision
	// Policy is what the policy is called; empty where that is not known.
	Policy string
}

// WriteJSON writes the decision.
func (y *Why) WriteJSON(w io.Writer) error { return encode(w, "json", y.Decision) }

// Write writes it as text: the pod and its sizes, what is decided, what is not
// changed, and what every rule says.
func (y *Why) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	y.writeHead(w)
	y.writeTargets(w)
	y.writeDecision(w)
	y.writeHeld(w)
	y.writeVerdicts(w)
	return w.Flush()
}

func (y *Why) writeHead(w io.Writer) {
	in := &y.Input
	node := "on no node yet"
	if in.Pod.Spec.NodeName != "" {
		node = "on " + in.Pod.Spec.NodeName
	}
	policy := "mode " + string(in.Policy.Mode)
	if y.Policy != "" {
		policy = y.Policy + ", " + policy
	}
	fmt.Fprintf(w, "Pod %s/%s of %s %s, %s\n%s\n%s\n\n", in.Pod.Namespace, in.Pod.Name, in.Workload.Kind, in.Workload.Name, node, policy, second(in.Now))
}

func second(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// writeTargets shows what each container asks for, and should.
func (y *Why) writeTargets(w io.Writer) {
	lines := [][]string{{"CONTAINER", "RESOURCE", "REQUEST", "LIMIT"}}
	spec := &y.Input.Pod.Spec
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			lines = append(lines, y.targets(c)...)
		}
	}
	for i := range spec.Containers {
		lines = append(lines, y.targets(&spec.Containers[i])...)
	}
	rows(w, lines)
}

func (y *Why) targets(c *corev1.Container) [][]string {
	target := updater.Container{}
	for _, t := range y.Input.Target.Containers {
		if t.Name == c.Name {
			target = t
		}
	}
	var lines [][]string
	for _, r := range sizing.Resources {
		to := target.CPU.Size
		if r == corev1.ResourceMemory {
			to = target.Memory.Size
		}
		lines = append(lines, []string{
			c.Name, string(r),
			becomes(r, sizing.Amount(r, c.Resources.Requests), to.Request, to == updater.Size{}),
			becomes(r, sizing.Amount(r, c.Resources.Limits), to.Limit, to == updater.Size{}),
		})
	}
	return lines
}

// becomes shows a figure and its target, 0 being unset.
func becomes(r corev1.ResourceName, now, to int64, unknown bool) string {
	text := func(v int64) string {
		if v == 0 {
			return "-"
		}
		q := sizing.Quantity(r, v)
		return q.String()
	}
	switch {
	case unknown:
		return text(now) + " (no target)"
	case now == to:
		return text(now)
	}
	return text(now) + " → " + text(to)
}

func (y *Why) writeDecision(w io.Writer) {
	d := &y.Decision
	fmt.Fprintf(w, "\n%s (%s)", d.Action, d.Reason)
	if len(d.Steps) == 0 || !strings.HasPrefix(d.Message, d.Steps[0].String()) { // The steps follow.
		fmt.Fprintf(w, ": %s", d.Message)
	}
	fmt.Fprintf(w, "\n    %s\n", d.Reason.Meaning())
	if !d.Until.IsZero() {
		fmt.Fprintf(w, "    Looked at again %s.\n", y.from(d.Until))
	}
	if d.Ended != nil {
		fmt.Fprintf(w, "    The one before, a %s, has ended: %s (%s).\n", d.Ended.Kind, d.Ended.State, d.Ended.Reason)
	}
	for i, s := range d.Steps {
		when := "Sent now, if the cluster's rate allows it"
		if i > 0 {
			when = "After it has taken effect"
		}
		fmt.Fprintf(w, "    %s: %s.\n", when, s)
	}
}

// from is when something is, beside the present.
func (y *Why) from(at time.Time) string {
	if left := at.Sub(y.Input.Now); left > 0 {
		return fmt.Sprintf("at %s, in %s", second(at), span(left))
	}
	return "at once"
}

func (y *Why) writeHeld(w io.Writer) {
	if len(y.Decision.Held) == 0 {
		return
	}
	fmt.Fprintln(w, "\n  Not changed, or not wholly:")
	for _, h := range y.Decision.Held {
		fmt.Fprintf(w, "    %s (%s): %s\n        %s\n", h.Action, h.Reason, h.Message, h.Reason.Meaning())
		if !h.Until.IsZero() {
			fmt.Fprintf(w, "        Looked at again %s.\n", y.from(h.Until))
		}
		if len(h.Advice) > 0 {
			fmt.Fprintf(w, "        To free it: %s.\n", strings.Join(h.Advice, "; "))
		}
	}
}

func (y *Why) writeVerdicts(w io.Writer) {
	fmt.Fprintln(w, "\n  The rules, in their order:")
	var lines [][]string
	for _, v := range y.Decision.Verdicts {
		lines = append(lines, []string{v.Outcome, v.Rule})
		if v.Note != "" {
			lines = append(lines, []string{"", "  " + v.Note})
		}
	}
	rows(w, lines)
}
