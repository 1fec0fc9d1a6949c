/** Curator's recipes against a ZooKeeper server: Recipes CONNECT ROOT. See Checks for the output. */
final class Recipes {
    private Recipes() {}

    public static void main(String[] args) throws InterruptedException {
        new Checks()
                .add("InterProcessMutex", LockChecks::mutex)
                .add("Revocation", LockChecks::revocation)
                .add("InterProcessReadWriteLock", LockChecks::readWriteLock)
                .add("InterProcessSemaphoreV2", LockChecks::semaphore)
                .add("LeaderLatch", MemberChecks::leaderLatch)
                .add("DistributedDoubleBarrier", MemberChecks::doubleBarrier)
                .add("PersistentNode", MemberChecks::persistentNode)
                .add("CuratorCache", WatchChecks::cache)
                .add("Watches", WatchChecks::watches)
                .add("NodeKinds", DataChecks::nodeKinds)
                .add("Transaction", DataChecks::transaction)
                .add("Counters", DataChecks::counters)
                .add("SimpleDistributedQueue", DataChecks::queue)
                .add("Reads", RequestChecks::reads)
                .add("ACLs", RequestChecks::acls)
                .add("PersistentWatches", RequestChecks::persistentWatches)
                .add("RemovedWatches", RequestChecks::removedWatches)
                .run(args[0], args[1]);
    }
}
