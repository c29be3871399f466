package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// SoleContainer is the container of a workload in the short form.
	SoleContainer = "app"
	// manifest is a description of the folder, and folders named extra hold
	// more columns about the same series. Neither is usage.
	manifest = "manifest"
	extra    = "extra"
	// podCgroup is what cAdvisor calls the pause container's row: not one that
	// anybody sizes.
	podCgroup = "POD"
)

// layout is shown where a folder is not laid out like that.
const layout = `expected
  <namespace>/<pod>/<container>.csv or .csv.gz, or
  <namespace>/<workload>.csv or .csv.gz for one replica with the sole container "app",
each with the header timestamp_seconds,cpu_cores,memory_bytes`

// file is one series: of a container of a pod, or in the short form of a
// workload.
type file struct {
	path                      string
	namespace, pod, container string
	short                     bool
}

// list returns the series below root in order of namespace, pod and container.
func list(root string) ([]file, error) {
	namespaces, err := entries(root)
	if err != nil {
		return nil, err
	}
	if len(namespaces.series) > 0 {
		return nil, fmt.Errorf("reading history folder %s: %s lies outside the folder of a namespace; %s",
			root, filepath.Base(namespaces.series[0].path), layout)
	}
	var all []file
	var errs []error
	for _, namespace := range namespaces.folders {
		found, err := listNamespace(filepath.Join(root, namespace), namespace)
		all, errs = append(all, found...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading history folder %s: no CSV files; %s", root, layout)
	}
	return all, nil
}

func listNamespace(path, namespace string) ([]file, error) {
	in, err := entries(path)
	if err != nil {
		return nil, err
	}
	var all []file
	for _, s := range in.series {
		all = append(all, file{s.path, namespace, s.name, SoleContainer, true})
	}
	errs := []error{in.twins()}
	for _, pod := range in.folders {
		containers, err := entries(filepath.Join(path, pod))
		errs = append(errs, err, containers.twins())
		for _, s := range containers.series {
			if s.name != podCgroup {
				all = append(all, file{s.path, namespace, pod, s.name, false})
			}
		}
	}
	return all, errors.Join(errs...)
}

// folder is what matters in one directory, by name.
type folder struct {
	series  []entry
	folders []string
}

// entry is a CSV file; its name is without the extension.
type entry struct{ name, path string }

func entries(path string) (folder, error) {
	var in folder
	found, err := os.ReadDir(path)
	if err != nil {
		return in, fmt.Errorf("reading history folder: %w", err)
	}
	for _, e := range found {
		full := filepath.Join(path, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := os.Stat(full) // The target where it is a symbolic link.
		if err != nil {
			return in, fmt.Errorf("reading history folder: %w", err)
		}
		name, isCSV := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".gz"), ".csv")
		switch {
		case info.IsDir() && e.Name() != extra:
			in.folders = append(in.folders, e.Name())
		case !info.IsDir() && isCSV && name != "" && name != manifest:
			in.series = append(in.series, entry{name, full})
		}
	}
	slices.SortFunc(in.series, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return in, nil
}

// twins is an error where a series is there twice, plain and compressed: they
// would count as one pod, and one of them may be stale.
func (in folder) twins() error {
	byName := map[string]string{}
	var errs []error
	for _, s := range in.series {
		if other, ok := byName[s.name]; ok {
			errs = append(errs, fmt.Errorf("reading history folder: %s and %s are the same series; keep one", other, s.path))
		}
		byName[s.name] = s.path
	}
	return errors.Join(errs...)
}
