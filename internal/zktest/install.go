package zktest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// EnvZooKeeper names a folder with the zookeeper.jar and zookeeper-jute.jar of
// another version than the installed one, for all real servers. make zookeeper
// fetches one.
const EnvZooKeeper = "ZKTEST_ZOOKEEPER"

// javaFolder is where Debian keeps Java libraries.
const javaFolder = "/usr/share/java"

// findReal returns the java command and the class path of a real server, or an
// error that says what is missing and how to get it.
func findReal() (java, classPath string, err error) {
	if !canRunReal {
		return "", "", errors.New("real servers need Linux")
	}
	java, err = exec.LookPath("java")
	if err != nil {
		return "", "", errors.New("no java command found; \"make test\" installs it, or: apt-get install default-jdk-headless")
	}
	classPath, err = findJars(cmp.Or(os.Getenv(EnvZooKeeper), javaFolder))
	return java, classPath, err
}

// findJars returns the class path with the ZooKeeper of a folder. zookeeper.jar
// names the jars it needs in its manifest, by Debian's paths; the logger's back
// end and a part of what TLS takes are missing there, and the classes of the
// protocol must be of the same version, so they come first.
func findJars(folder string) (classPath string, err error) {
	if !filepath.IsAbs(folder) {
		return "", fmt.Errorf("%s=%q: want an absolute path, since tests run in folders of their own", EnvZooKeeper, folder)
	}
	jars := []string{
		filepath.Join(folder, "zookeeper-jute.jar"),
		filepath.Join(folder, "zookeeper.jar"),
		filepath.Join(javaFolder, "slf4j-simple.jar"),
		filepath.Join(javaFolder, "netty-codec.jar"),
	}
	for _, jar := range jars {
		if _, err := os.Stat(jar); err == nil {
			continue
		}
		if filepath.Dir(jar) != javaFolder {
			return "", fmt.Errorf("no %s found; %s is to name a folder that has it, such as \"make zookeeper\" makes", jar, EnvZooKeeper)
		}
		return "", fmt.Errorf("no %s found; \"make test\" installs it, or: apt-get install libzookeeper-java libslf4j-java", jar)
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
}
