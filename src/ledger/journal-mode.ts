/** What the journal survives before a request goes on: the end of the process, of the machine, or of its disk. */
export type JournalMode = "process" | "host" | "remote";
