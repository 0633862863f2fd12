package servertest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRDs selects the CustomResourceDefinitions for [Server.Define]: definitions in files and definitions as Go values. A file may
// have any number of documents of YAML or JSON. Unless SkipOthers is set, all of them must be definitions. No definition may
// occur twice.
type CRDs struct {
	// Paths are files and folders. The .yaml, .yml and .json files directly in a folder are read, but no folders in it.
	Paths []string
	// FS is the file system of Paths, such as an embed.FS. Then Paths have the form of package io/fs: "config/crd". Without Paths
	// all .yaml, .yml and .json files of FS are read, at any depth. nil means the file system of the operating system.
	FS fs.FS
	// Objects are definitions in addition to those in files. apiVersion and kind may be empty. The objects are not changed.
	Objects []*apiextensionsv1.CustomResourceDefinition
	// SkipMissing treats Paths that do not exist as empty folders.
	SkipMissing bool
	// SkipOthers ignores objects in the files that are not CustomResourceDefinitions, such as a kustomization.
	SkipOthers bool
}

// crdFile is a CustomResourceDefinition with the place where it was read.
type crdFile struct {
	manifest
	apiextensionsv1.CustomResourceDefinition
}

// readCRDs reads all definitions, sorted by name.
func readCRDs(sources []CRDs) ([]crdFile, error) {
	byName := map[string]crdFile{}
	for _, c := range sources {
		some, err := c.read()
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			if other, ok := byName[d.Name]; ok {
				return nil, fmt.Errorf("%s: the CustomResourceDefinition %s is in %s too", d.place(""), d.Name, other.place(""))
			}
			byName[d.Name] = d
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b crdFile) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// read reads the definitions of one source. The result may be empty only if SkipMissing or SkipOthers is set.
func (c CRDs) read() (out []crdFile, err error) {
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		content, err := c.content(name)
		if err != nil {
			return nil, err
		}
		documents, err := manifestsOf(name, content)
		if err != nil {
			return nil, err
		}
		for _, m := range documents {
			d := crdFile{manifest: m}
			switch err := d.decode(); {
			case errors.Is(err, errOther) && c.SkipOthers:
				continue
			case err != nil:
				return nil, fmt.Errorf("%s: %w", d.place(""), err)
			}
			out = append(out, d)
		}
	}
	for i, o := range c.Objects {
		d, err := crdObject(i, o)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	if len(out) == 0 && !c.SkipMissing && !c.SkipOthers {
		return nil, fmt.Errorf("there is no CustomResourceDefinition in %q", c.Paths)
	}
	return out, nil
}

// crdObject returns the definition of Objects[i].
func crdObject(i int, o *apiextensionsv1.CustomResourceDefinition) (crdFile, error) {
	d := crdFile{manifest: manifest{file: fmt.Sprintf("CRDs.Objects[%d]", i)}}
	if o == nil {
		return d, fmt.Errorf("%s is nil", d.file)
	}
	with := *o // a shallow copy, because only TypeMeta changes
	if with.APIVersion == "" && with.Kind == "" {
		with.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	}
	body, err := json.Marshal(&with)
	if err != nil {
		return d, fmt.Errorf("%s: %w", d.file, err)
	}
	d.body = body
	if err := d.decode(); err != nil {
		return d, fmt.Errorf("%s: %w", d.file, err)
	}
	return d, nil
}

// errOther is the error for an object that is not a CustomResourceDefinition.
var errOther = errors.New("only CustomResourceDefinitions can be installed")

// decode decodes the fields of the definition that the installation needs. The server validates the rest.
func (d *crdFile) decode() error {
	if err := json.Unmarshal(d.body, &d.TypeMeta); err != nil {
		return fmt.Errorf("this is no object: %w", err)
	}
	switch gvk := d.GroupVersionKind(); {
	case gvk.Group != apiextensionsv1.GroupName || gvk.Kind != "CustomResourceDefinition":
		return fmt.Errorf("this is a %q of %q; %w", d.Kind, d.APIVersion, errOther)
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

// files returns the files in Paths, and those in the folders in Paths.
func (c CRDs) files() ([]string, error) {
	if c.FS != nil && len(c.Paths) == 0 {
		return c.tree()
	}
	var files []string
	for _, name := range c.Paths {
		entries, err := c.entries(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && c.SkipMissing:
		case err != nil:
			if info, statErr := c.stat(name); statErr != nil || info.IsDir() {
				return nil, err
			}
			files = append(files, name)
		}
		for _, e := range entries {
			switch {
			case !isManifest(e):
			case c.FS != nil:
				files = append(files, path.Join(name, e.Name()))
			default:
				files = append(files, filepath.Join(name, e.Name()))
			}
		}
	}
	return files, nil
}

// tree returns all manifests of FS.
func (c CRDs) tree() (files []string, err error) {
	err = fs.WalkDir(c.FS, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && isManifest(e) {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

func (c CRDs) entries(name string) ([]fs.DirEntry, error) {
	if c.FS != nil {
		return fs.ReadDir(c.FS, name)
	}
	return os.ReadDir(name)
}

func (c CRDs) stat(name string) (fs.FileInfo, error) {
	if c.FS != nil {
		return fs.Stat(c.FS, name)
	}
	return os.Stat(name)
}

func (c CRDs) content(name string) ([]byte, error) {
	if c.FS != nil {
		return fs.ReadFile(c.FS, name)
	}
	return os.ReadFile(name)
}

func isManifest(e fs.DirEntry) bool {
	return !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name()))
}
