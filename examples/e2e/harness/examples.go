package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// The other examples, each built when first asked for.
var (
	wardrobeBinary = sync.OnceValues(func() (string, error) { return buildExample("wardrobe") })
	crdsBinary     = sync.OnceValues(func() (string, error) { return buildExample("crds") })
)

// buildExample builds the program of a folder of examples.
func buildExample(name string) (string, error) {
	files, err := filepath.Glob(root + "/examples/" + name + "/*.go")
	if err != nil {
		return "", err
	}
	for _, file := range files { // reading the source makes it an input of the tests
		if _, err := os.ReadFile(file); err != nil {
			return "", err
		}
	}
	return build(root, "./examples/"+name)
}

// exampleBinary builds the program of an example.
func exampleBinary(name string) (string, error) {
	switch name {
	case "hello":
		return helloBinary()
	case "wardrobe":
		return wardrobeBinary()
	case "crds":
		return crdsBinary()
	}
	return "", fmt.Errorf("there is no example %q; want hello, wardrobe or crds", name)
}

func (o Options) example() string { return cmp.Or(o.Example, "hello") }
