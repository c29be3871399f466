package workload

import (
	corev1 "k8s.io/api/core/v1"
)

func (r *reader) namespace(o object) error {
	var n corev1.Namespace
	if err := o.decode(&n); err != nil {
		return err
	}
	ok, err := r.name(o, &n.ObjectMeta, false)
	if ok {
		r.set.NamespaceLabels[n.Name] = n.Labels
	}
	return err
}

func (r *reader) limitRange(o object) error {
	var l corev1.LimitRange
	if err := o.decode(&l); err != nil {
		return err
	}
	ok, err := r.name(o, &l.ObjectMeta, true)
	if ok {
		r.set.LimitRanges[l.Namespace] = append(r.set.LimitRanges[l.Namespace], l)
	}
	return err
}

func (r *reader) quota(o object) error {
	var q corev1.ResourceQuota
	if err := o.decode(&q); err != nil {
		return err
	}
	ok, err := r.name(o, &q.ObjectMeta, true)
	if ok {
		r.set.Quotas[q.Namespace] = append(r.set.Quotas[q.Namespace], q)
	}
	return err
}

func (r *reader) node(o object) error {
	var n corev1.Node
	if err := o.decode(&n); err != nil {
		return err
	}
	ok, err := r.name(o, &n.ObjectMeta, false)
	if ok {
		r.set.Nodes = append(r.set.Nodes, n)
	}
	return err
}
