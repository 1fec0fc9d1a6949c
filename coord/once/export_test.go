package once

import "path"

// Dir returns the directory in which the directory of a key is.
func Dir(o *Once, key string) (string, error) {
	at, err := o.place(key)
	return path.Dir(at.dir), err
}
