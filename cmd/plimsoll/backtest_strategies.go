package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// known are the strategies that have a name, in the order in which help shows
// them.
var known = []backtest.Strategy{
	backtest.Profile(v1alpha1.ProfileBalanced),
	backtest.Profile(v1alpha1.ProfileCost),
	backtest.Profile(v1alpha1.ProfileReliability),
	backtest.Provisioned{},
	backtest.WatchedMax{},
	backtest.KRR{},
	backtest.NewVPA(),
	backtest.VPA{Margin: backtest.NewVPA().Margin, Recreate: true},
	backtest.NewAutopilot(),
	backtest.Autopilot{Margin: backtest.NewAutopilot().Margin, MemoryMax: true},
	backtest.HindsightMax{},
	backtest.Clairvoyant{},
}

var defaultStrategies = []string{"provisioned", "krr", "vpa", "autopilot", "hindsight-max", "clairvoyant"}

func strategyNames() []string {
	var names []string
	for _, s := range known {
		names = append(names, s.Name())
	}
	return names
}

func strategiesByName(names []string) ([]backtest.Strategy, error) {
	var all []backtest.Strategy
	var errs []error
	for _, name := range names {
		if strings.EqualFold(name, "none") && len(names) == 1 {
			return nil, nil
		}
		i := slices.IndexFunc(known, func(s backtest.Strategy) bool { return strings.EqualFold(s.Name(), name) })
		if i < 0 {
			errs = append(errs, fmt.Errorf("--strategies: %q is not one of %s", name, strings.Join(strategyNames(), ", ")))
			continue
		}
		all = append(all, known[i])
	}
	return all, errors.Join(errs...)
}

// tested are the policies under test: one a file, or the default one.
func (s *backtestSettings) tested(stdin io.Reader) ([]backtest.Strategy, error) {
	if len(s.policies) == 0 {
		return s.defaultPolicy(), nil
	}
	var all []backtest.Strategy
	taken := map[string]bool{}
	for _, c := range s.compared {
		taken[c.Name()] = true
	}
	for _, path := range s.policies {
		set, err := workload.Read([]string{path}, stdin, workload.Options{Namespace: s.namespace})
		if err != nil {
			return nil, err
		}
		p, err := s.policyOf(set, path)
		if err != nil {
			return nil, err
		}
		name := p.Label
		for n := 2; taken[p.Label]; n++ {
			p.Label = fmt.Sprintf("%s-%d", name, n)
		}
		taken[p.Label] = true
		all = append(all, p)
	}
	return all, nil
}

// defaultPolicy is the profile Balanced with what flags change of it, unless it
// is compared with anyway.
func (s *backtestSettings) defaultPolicy() []backtest.Strategy {
	var spec v1alpha1.PolicySpec
	s.edit(&spec)
	values := backtest.Applied(spec)
	p := backtest.Policy{Label: string(values.Profile), Values: values}
	compared := slices.IndexFunc(s.compared, func(c backtest.Strategy) bool { return c.Name() == p.Label })
	if compared >= 0 {
		s.compared = slices.Delete(slices.Clone(s.compared), compared, compared+1)
	}
	return []backtest.Strategy{p}
}

// policyOf is the one policy of a file.
func (s *backtestSettings) policyOf(set *workload.Set, path string) (backtest.Policy, error) {
	var specs []v1alpha1.PolicySpec
	var names []string
	for _, p := range set.Policies {
		specs, names = append(specs, p.Spec.PolicySpec), append(names, p.Name)
	}
	for _, p := range set.ClusterPolicies {
		specs, names = append(specs, p.Spec.PolicySpec), append(names, p.Name)
	}
	if len(specs) != 1 {
		return backtest.Policy{}, fmt.Errorf("--policy: %s holds %d policies; write one a file, since each is replayed over every workload", path, len(specs))
	}
	name := names[0]
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	s.edit(&specs[0])
	return backtest.Policy{Label: name, Values: backtest.Applied(specs[0])}, nil
}
