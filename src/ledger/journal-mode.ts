/** What the journal is proof against before a request goes on: the process ending, the machine, or the loss of its disk. */
export type JournalMode = "process" | "host" | "remote";
