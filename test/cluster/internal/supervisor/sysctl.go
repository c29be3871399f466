package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const sysctlRoot = "/proc/sys"

// sysctlFile, inside the cluster's folder, remembers the settings of before.
const sysctlFile = "sysctls.json"

// saveSysctls writes down the settings as they are. One that this kernel lacks is
// passed over.
func saveSysctls(c Config) error {
	if len(c.Sysctls) == 0 {
		return nil
	}
	values := map[string]string{}
	for _, name := range c.Sysctls {
		value, err := os.ReadFile(filepath.Join(sysctlRoot, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("saving the kernel setting %s: %w", name, err)
		}
		values[name] = string(value)
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, sysctlFile), raw, 0o600); err != nil {
		return fmt.Errorf("saving the kernel settings: %w", err)
	}
	return nil
}

// restoreSysctls writes the saved settings back where they have changed.
func restoreSysctls(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, sysctlFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the saved kernel settings: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf("reading the saved kernel settings: %w", err)
	}
	var errs []error
	for name, value := range values {
		path := filepath.Join(sysctlRoot, name)
		if now, err := os.ReadFile(path); err == nil && string(now) == value {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restoring the kernel setting %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
