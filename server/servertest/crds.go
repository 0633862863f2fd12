package servertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// crdFile is a CustomResourceDefinition and where it was read.
type crdFile struct {
	from string // the path, and which of the file's documents it is
	body []byte // JSON
	apiextensionsv1.CustomResourceDefinition
}

// readCRDs reads the definitions of files, and of the .yaml, .yml and .json files of folders, not of folders below them. All
// that is in them must be CustomResourceDefinitions of v1, and each there once.
func readCRDs(paths []string) ([]crdFile, error) {
	files, err := filesOf(paths)
	if err != nil {
		return nil, err
	}
	byName := map[string]crdFile{}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		documents, err := documentsOf(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i, body := range documents {
			d := crdFile{from: path, body: body}
			if len(documents) > 1 {
				d.from = fmt.Sprintf("%s, document %d", path, i+1)
			}
			if err := d.read(); err != nil {
				return nil, fmt.Errorf("%s: %w", d.from, err)
			}
			if other, ok := byName[d.Name]; ok {
				return nil, fmt.Errorf("%s: the CustomResourceDefinition %s is in %s too", d.from, d.Name, other.from)
			}
			byName[d.Name] = d
		}
	}
	if len(byName) == 0 {
		return nil, fmt.Errorf("there is no CustomResourceDefinition in %q", paths)
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b crdFile) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) }), nil
}

// read decodes the definition for what the installation needs to know of it. The server is who decides about the rest.
func (d *crdFile) read() error {
	if err := json.Unmarshal(d.body, &d.TypeMeta); err != nil {
		return fmt.Errorf("this is no object: %w", err)
	}
	switch gvk := d.GroupVersionKind(); {
	case gvk.Group != apiextensionsv1.GroupName || gvk.Kind != "CustomResourceDefinition":
		return fmt.Errorf("this is a %q of %q; only CustomResourceDefinitions can be installed", d.Kind, d.APIVersion)
	case gvk.Version != "v1":
		return fmt.Errorf("this CustomResourceDefinition is of %s, which no server of Kubernetes 1.22 or later has; make it one of apiextensions.k8s.io/v1", d.APIVersion)
	}
	if err := json.Unmarshal(d.body, &d.CustomResourceDefinition); err != nil {
		return err
	}
	if d.Name == "" {
		return errors.New("this CustomResourceDefinition has no name")
	}
	return nil
}

// filesOf are the files that paths name, and those of the folders that they name.
func filesOf(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		entries, err := os.ReadDir(path)
		if err != nil {
			if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
				files = append(files, path)
				continue
			}
			return nil, err
		}
		for _, e := range entries {
			if isManifest(e) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
	}
	return files, nil
}

func isManifest(e fs.DirEntry) bool {
	return !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name()))
}

// documentsOf returns the documents of a YAML file, or the values of a JSON file, as JSON: those with something in them.
func documentsOf(content []byte) ([][]byte, error) {
	var out [][]byte
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		for d := json.NewDecoder(bytes.NewReader(content)); ; {
			var one json.RawMessage
			if err := d.Decode(&one); err != nil {
				if errors.Is(err, io.EOF) {
					return out, nil
				}
				return nil, err
			}
			out = append(out, one)
		}
	}
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		text, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		one, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, err
		}
		if string(one) != "null" { // nothing, or comments alone
			out = append(out, one)
		}
	}
}
