package storage

import "testing"

func TestKnownRevisionsAreBounded(t *testing.T) {
	var k knownRevisions
	if k.has(1) {
		t.Error("the empty set has a revision")
	}
	for _, r := range []int64{1, 63, 64, 1023, 1024, 1 << 40} {
		k.add(r)
	}
	for r, want := range map[int64]bool{0: false, 1: true, 2: false, 63: true, 64: true, 65: false, 1023: true, 1024: true, 1025: false, 1 << 40: true} {
		if k.has(r) != want {
			t.Errorf("has(%d) is %v", r, !want)
		}
	}
	for i := range int64(maxRevisionBlocks + 100) {
		r := i * revisionsPerBlock
		if k.add(r); !k.has(r) {
			t.Fatalf("revision %d was forgotten at once", r)
		}
	}
	if len(k.blocks) > maxRevisionBlocks {
		t.Errorf("%d blocks", len(k.blocks))
	}
}
