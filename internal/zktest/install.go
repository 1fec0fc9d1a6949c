package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// javaFolder is where Debian keeps Java libraries. zookeeper.jar names the jars it needs in its manifest; only the
// logger's back end is missing there.
const javaFolder = "/usr/share/java"

var neededJars = []string{"zookeeper.jar", "slf4j-simple.jar"}

// findReal returns the java command and the class path of a real server, or says what is missing and how to get it.
func findReal() (java, classPath string, err error) {
	if !canRunReal {
		return "", "", errors.New("real servers need Linux")
	}
	java, err = exec.LookPath("java")
	if err != nil {
		return "", "", errors.New("no java command found; \"make test\" installs it, or: apt-get install default-jdk-headless")
	}
	var jars []string
	for _, name := range neededJars {
		jar := filepath.Join(javaFolder, name)
		if _, err := os.Stat(jar); err != nil {
			return "", "", fmt.Errorf("no %s found; \"make test\" installs it, or: apt-get install libzookeeper-java libslf4j-java", jar)
		}
		jars = append(jars, jar)
	}
	return java, strings.Join(jars, string(os.PathListSeparator)), nil
}
