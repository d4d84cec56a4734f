import type { MutantsOfFile } from "./mutant.ts";
import { INSTANCE_LEASE } from "./mutant.ts";

/** The journal and its replay. */
export const journalMutants: readonly MutantsOfFile[] = [
	{
		file: "ledger/journal.ts",
		killers: ["ledger/journal", "ledger/journal-carry", 60],
		mutants: [
			{
				breaks: "what cannot be removed of a journal ends the process",
				before: "if (!isOfTheSystem(error)) throw error;\n\t\t\tlog.warn",
				after: "if (error) throw error;\n\t\t\tlog.warn",
			},
			{
				breaks: "of three waits for the disk that meet one ends before the disk has written",
				before: "if (next) return next;",
				after: "",
			},
			{
				breaks: "segments are removed out of their turn",
				before: "if (segment === current || segment.owed > 0 || closed) return;",
				after: "if (segment === current || segment.owed > 0 || closed) continue;",
			},
			{
				breaks: "a segment is removed before what was carried out of it is on the disk",
				before: "if (options.syncs && carriesDurable < carries) {",
				after: "if (options.syncs && carriesDurable < 0) {",
			},
			{
				breaks: "what is appended during a sync counts as synced by it",
				before: "if (!syncing) return startSync();",
				after: "return syncing ?? startSync();",
			},
			{
				breaks: "a sync covers the newest segment alone",
				before: "const dirty = [...segments.values()].filter((segment) => segment.dirty);",
				after: "const dirty = [current].filter((segment) => segment.dirty);",
			},
			{
				breaks: "a sync that failed is tried again",
				before: "if (syncFailure) return Promise.reject(syncFailure.error);",
				after: "",
			},
			{
				breaks: "a failed sync is nobody's concern",
				before: "deps.onSyncFailed(error);",
				after: "",
			},
			{
				breaks: "what runs cannot be settled on a full disk",
				before: "if (!(error instanceof DiskFull) || !disk.freeReserve()) throw error;",
				after: "if (error) throw error;",
			},
			{
				breaks: "a full disk admits requests",
				before: "admit(body) {\n\t\t\trefuseUnlessWritable();",
				after: "admit(body) {",
			},
			{
				breaks: "a file is closed under a sync",
				before: "if (syncing || next) unused.push(file);\n\t\telse file.close();",
				after: "file.close();",
			},
		],
	},
	{
		file: "ledger/journal-record.ts",
		killers: ["ledger/journal"],
		mutants: [
			{
				breaks: "a damaged record is read",
				before: "if (Bun.hash.crc32(payload) !== view.getUint32(at + 4, true)) break;",
				after: "",
			},
			{
				breaks: "a record that is too long is cut off without a word",
				before: 'assert(HEADER_BYTES + 1 + body.length * 3 <= target.length, "a journal record fits the buffer");',
				after: "",
			},
		],
	},
	{
		file: "ledger/journal-disk.ts",
		killers: ["ledger/mapped-file", "ledger/journal"],
		mutants: [
			{
				breaks: "a record that did not fit leaves its torn beginning behind",
				before: "ftruncateSync(fd, from);",
				after: "",
			},
			{
				breaks: "what is written behind a mapped part begins elsewhere",
				before: "if (!store(bytes, count)) writeAll(fd, bytes, count, length);",
				after: "if (!store(bytes, count)) writeAll(fd, bytes, count, length + 1);",
			},
			{
				breaks: "a closed file ends in zeros",
				before: "ftruncateSync(fd, length);",
				after: "",
			},
		],
	},
	{
		file: "ledger/mapped-file.ts",
		killers: ["ledger/mapped-file", "ledger/journal"],
		mutants: [
			{
				breaks: "a record that spans two pieces loses its end",
				before: "bytes.copy(next, 0, room, length);",
				after: "",
			},
			{
				breaks: "a record that spans two pieces is stored in part before there is room for the rest",
				before: "const next = pieceFrom(from + PIECE_BYTES);\n\t\t\tbytes.copy(piece, used, 0, room);",
				after: "bytes.copy(piece, used, 0, room);\n\t\t\tconst next = pieceFrom(from + PIECE_BYTES);",
			},
			{
				breaks: "what is stored is the process's own",
				before: "{ shared: true,",
				after: "{ shared: false,",
			},
			{
				breaks: "a file system is mapped whose full disk ends the process",
				before: "return SYSTEMS.has(systemType >>> 0);",
				after: "return systemType !== 0;",
			},
		],
	},
	{
		file: "ledger/journal-reader.ts",
		killers: ["ledger/journal", "ledger/journal-carry", ...INSTANCE_LEASE, 60],
		mutants: [
			{
				breaks: "what a crash cut is charged its bound",
				before: "minUsd(progress?.delivered ?? ZERO_USD, admitted.reserved)",
				after: "minUsd(progress?.bound ?? ZERO_USD, admitted.reserved)",
			},
			{
				breaks: "what a crash cut is charged more than was reserved",
				before: "minUsd(progress?.delivered ?? ZERO_USD, admitted.reserved)",
				after: "progress?.delivered ?? ZERO_USD",
			},
			{
				breaks: "a settled request counts as open in a replay",
				before: "open.delete(record.id);",
				after: "",
			},
			{
				breaks: "a replay forgets what was known of a request that was carried forward",
				before: "progress: open.get(record.id)?.progress });",
				after: "progress: undefined });",
			},
		],
	},
	{
		file: "ledger/journal-home.ts",
		killers: ["ledger/recovery", ...INSTANCE_LEASE, "ledger/copied-journal", "ledger/found-journals"],
		mutants: [
			{
				breaks: "the lock of a copied journal is believed",
				before: "const isCopy = mark !== markOf(path, named, began) ||",
				after: "const isCopy =",
			},
			{
				breaks: "a lock that says nothing is believed",
				before: "const isCopy = mark !== markOf(path, named, began) ||",
				after: 'const isCopy = (mark !== "" && mark !== markOf(path, named, began)) ||',
			},
			{
				breaks: "a lock is believed where a file system keeps none",
				before: " || !isLocked(folder);",
				after: ";",
			},
			{
				breaks: "a journal is looked for where its owner would have put it",
				before: "folder = folderOf({ id, epoch }) }) {",
				after: "folder: _ }) {\n\t\t\tconst folder = folderOf({ id, epoch });",
			},
			{
				breaks: "a journal whose folder is not named by a number is not seen",
				before: "(!Number.isNaN(epoch) || !isEmpty(at))",
				after: "!Number.isNaN(epoch)",
			},
			{
				breaks: "a journal is that of whoever its folder is named after",
				before: "const owner = ownerIn(mark) ?? named;",
				after: "const owner = named;",
			},
			{
				breaks: "what lies at the place of a journal that this process holds is replayed",
				before: "if (held.has(folder)) return undefined;",
				after: "",
			},
			{
				breaks: "what cannot be read keeps all journals from being seen",
				before: "onUnreadable(join(root, name), error);",
				after: "throw error;",
			},
			{
				breaks: "an attempt without room leaves its folder behind",
				before: "removeIfEmpty(folder);\n\t\tthrow new Fault(",
				after: "throw new Fault(",
			},
			{
				breaks: "what was put at a journal's place is taken for it",
				before: "const isThere = () => isSeen(() => fileAt(path) === file && disk.isWhole());",
				after: "const isThere = () => isSeen(() => file !== undefined && disk.isWhole());",
			},
			{
				breaks: "a segment that is gone is not missed",
				before: "const isThere = () => isSeen(() => fileAt(path) === file && disk.isWhole());",
				after: "const isThere = () => isSeen(() => fileAt(path) === file);",
			},
			{
				breaks: "the journal of a process that is only stopped is replayed",
				before: "if (!lock) return undefined;",
				after: "if (!lock) return { disk: openJournalDisk(folder, { create }), release: () => {} };",
			},
		],
	},
	{
		file: "ledger/recovery.ts",
		killers: ["ledger/recovery", ...INSTANCE_LEASE, 60, "ledger/copied-journal", "ledger/found-journals"],
		mutants: [
			{
				breaks: "a replay closes the epoch without those whose rows are held",
				before: "await deps.whileHeld(untilSettled, true);",
				after: "",
			},
			{
				breaks: "a row that somebody holds keeps all leases of a replayed epoch open",
				before: "await closeOthers(deps, held);\n\t\t\t\tawait deps.whileHeld",
				after: "await deps.whileHeld",
			},
			{
				breaks: "a replay closes the leases that a held settlement goes to",
				before: "[account, key, ...budgets]",
				after: "[account, key]",
			},
			{
				breaks: "a replay takes what was left out for a held row for settled",
				before: "if (!late) return [...left].filter((one) => isHeld(one, busy));",
				after: "if (!late) return busy.size < 0 ? batch : [];",
			},
			{
				breaks: "a replay that finds the leases closed settles nothing",
				before: "if (!late) return [...left]",
				after: "if (late) return [];\n\t\t\treturn [...left]",
			},
			{
				breaks: "what a damaged journal claims beyond its lease is settled on a lease that is still open",
				before: "return settleUncovered(store, [...left]);",
				after: "return settleLate(store, [...left]);",
			},
			{
				breaks: "a replay leaves its epoch open",
				before: "if (!(await closeFree(deps))) await deps.whileHeld(() => closeEpoch(deps), false);",
				after: "",
			},
		],
	},
	{
		file: "ledger/left-journals.ts",
		killers: ["ledger/recovery", ...INSTANCE_LEASE, 60, "ledger/copied-journal", "ledger/found-journals"],
		mutants: [
			{
				breaks: "journals that wait keep others waiting",
				before: "places.give();\n\t\tonWait();",
				after: "onWait();",
			},
			{
				breaks: "journals that are found later wait for those that wait",
				before: "waiting.add(over);\n\t\t\tresolve(true);",
				after: "waiting.add(over);",
			},
			{
				breaks: "a copied journal is handed in whether or not its instance runs",
				before: 'if (standing !== "gone") {',
				after: 'if (standing === "unsure") {',
			},
			{
				breaks: "a worker takes what it left before a restart of the machine for a copy while its forerunner runs",
				before: '|| (standing === "runs here" && isAtHome)',
				after: "",
			},
			{
				breaks: "a journal is called a copy of an instance that joins again and again",
				before: 'if (standing === "unsure" || ',
				after: "if (",
			},
			{
				breaks: "a journal that could not be handed in is removed",
				before: 'log.warn("a journal could not be handed in", { instance: id, epoch, folder, error });',
				after: "claim.disk.destroy();",
			},
		],
	},
	{
		file: "ledger/kept-silences.ts",
		killers: ["ledger/kept-silences"],
		mutants: [
			{
				breaks: "what a process before this one has waited does not count",
				before: "new Map() : readSeen(note.read(), boot);",
				after: "new Map() : readSeen(undefined, boot);",
			},
			{
				breaks: "what was seen before the machine was started counts",
				before: "new Map(kept.boot === boot ? kept.seen : []);",
				after: "new Map(kept.seen);",
			},
			{
				breaks: "who has renewed its lease counts as silent since before",
				before: "if (known?.beat !== beat ||",
				after: "if (known === undefined ||",
			},
		],
	},
	{
		file: "ledger/owner-standing.ts",
		killers: ["ledger/recovery", "ledger/copied-journal", "ledger/found-journals"],
		mutants: [
			{
				breaks: "who has only joined again is said to run elsewhere",
				before: 'if (!running.renews) return "unsure";',
				after: "",
			},
			{
				breaks: "what has its journal here is said to run elsewhere",
				before: "if (journals.isHere(owner))",
				after: "if (journals.isHere(owner) && false)",
			},
			{
				breaks: "what ended in order as it was looked at is said to run elsewhere",
				before: "if (seen.has(running.epoch))",
				after: "if (running.epoch > 0)",
			},
			{
				breaks: "of instances of one name that renew in turns none is ever said to run",
				before: "seen.add(running.epoch);",
				after: "seen.clear();\n\t\tseen.add(running.epoch);",
			},
		],
	},
	{
		file: "ledger/lost-journal.ts",
		killers: [...INSTANCE_LEASE, "ledger/copied-journal", "ledger/found-journals"],
		mutants: [
			{
				breaks: "an attestation closes the leases of an instance that renews its own",
				before: 'if (state !== "silent" && was !== undefined && was !== beat)',
				after: "if (first.size < 0)",
			},
			{
				breaks: "an attestation takes for dead who was silent a moment ago",
				before: 'state === "silent" ||',
				after: "",
			},
			{
				breaks: "an attestation does not wait until the lease is over",
				before: "<= waitMs) continue;",
				after: "< 0) continue;",
			},
			{
				breaks: "a copied journal is handed in while its instance, which admits nothing any more, settles what runs",
				before: "options.settled === true && over",
				after: "options.settled === false && over",
			},
		],
	},
];
