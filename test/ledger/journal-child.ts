/**
 * Appends records to a journal until the process is killed. Prints each id, synchronously, only after the journal
 * acknowledged the record: a replay must find every printed id.
 */
import { writeSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { openJournalDisk } from "../../src/ledger/journal-disk.ts";
import { admittedEvent, openTestJournal, settledEvent } from "./fixture.ts";

const [folder, how] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: journal-child FOLDER [written]");
const disk = openJournalDisk(folder, { create: true, maps: how !== "written" });
const { journal } = openTestJournal(disk, systemClock, { segmentBytesMax: 600 * 1024 });

for (;;) {
	const id = newUuid();
	journal.admit(JSON.stringify({ ...admittedEvent("a", "k", id), reserved: 10 }));
	writeSync(1, `admit ${id}\n`);
	journal.settle(JSON.stringify(settledEvent("a", "k", 5, { id })));
	writeSync(1, `settle ${id}\n`);
}
