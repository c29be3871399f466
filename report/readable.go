package report

import corev1 "k8s.io/api/core/v1"

// Readable is a quantity of a resource as tables show it: CPU in cores or
// thousandths, memory in Ki, Mi or Gi. Text that is no quantity stays.
func Readable(r corev1.ResourceName, text string) string {
	if r == corev1.ResourceCPU {
		return readableCPU(text)
	}
	return readableMemory(text)
}
