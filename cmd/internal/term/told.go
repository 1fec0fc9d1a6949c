package term

// Account is what the JSON object of a verb that comes to nothing says beside
// its status and the error, and where it goes.
type Account struct {
	Paths []string
	Demo  string // the name of a demonstration
	Runs  bool   // the verb runs a command, which has the standard output
	Told  bool   // there is an object already that tells how it went
}

// Put has the only value under its name, or several as a list under the plural.
func Put[T any](object map[string]any, name string, values []T) {
	switch len(values) {
	case 0:
	case 1:
		object[name] = values[0]
	default:
		object[name+"s"] = values
	}
}

// AccountFor tells in JSON, if that is wanted, of an end that no object has
// told of. A demonstration does so in any case, as its last line.
func (s *Streams) AccountFor(status *ExitError) {
	if s.Told || !s.JSON && (s.Demo == "" || status.Code == ExitUsage) {
		return
	}
	s.Told = true
	object := map[string]any{"status": status.Code, "error": Briefly(status).Error()}
	Put(object, "path", s.Paths)
	if s.Demo != "" {
		object["demo"], object["ok"] = s.Demo, false
	}
	for name, value := range status.Fields {
		object[name] = value
	}
	to := s.Out
	if s.Runs {
		to = s.Err
	}
	_ = WriteJSON(to, object)
}

// Tell writes the object of a verb that runs a command.
func (s *Streams) Tell(object map[string]any) {
	if s.JSON {
		s.Told = true
		_ = WriteJSON(s.Err, object)
	}
}
