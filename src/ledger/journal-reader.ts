import { minUsd, type NanoUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent, SettledEvent } from "./event.ts";
import type { JournalDisk } from "./journal-disk.ts";
import { RecordKind, readRecords } from "./journal-record.ts";
import { NO_USAGE, type Progress } from "./outcome.ts";

export interface JournalSummary {
	/** Settlements of requests that were running at the crash, each charged for what its client certainly received. */
	readonly recovered: readonly SettledEvent[];
	/** Bytes skipped after a segment's first damaged record. Zeros at the segment's end do not count. */
	readonly damagedBytes: number;
}

/**
 * Reads an ended epoch's journal, segment by segment: settlements in order, then the requests that were running. Those
 * are charged the lower amount of their last progress record, so that customers pay only for what certainly arrived.
 */
export function* readJournal(disk: JournalDisk, nowWallMs: number): Generator<SettledEvent, JournalSummary> {
	const open = new Map<string, { admitted: AdmittedEvent; progress: Progress | undefined }>();
	let damagedBytes = 0;
	for (const name of disk.list()) {
		const bytes = disk.read(name);
		const reader = readRecords(bytes);
		for (;;) {
			const next = reader.next();
			if (next.done) {
				damagedBytes += bytesWithin(bytes) - next.value;
				break;
			}
			const { kind, body } = next.value;
			const record = JSON.parse(body) as SettledEvent;
			if (kind === RecordKind.settle) {
				open.delete(record.id);
				yield record;
			} else if (kind === RecordKind.admit) {
				// Records that were copied to a newer segment appear twice. Progress after the first copy still counts.
				open.set(record.id, { admitted: record, progress: open.get(record.id)?.progress });
			} else {
				const request = open.get(record.id);
				if (request) request.progress = record as unknown as Progress;
			}
		}
	}
	return {
		recovered: [...open.values()].map(({ admitted, progress }) => crashedEvent(admitted, progress, nowWallMs)),
		damagedBytes,
	};
}

/** Yields a segment's settlements up to the first damaged record. */
export function* readSettlements(bytes: Uint8Array): Generator<SettledEvent> {
	for (const { kind, body } of readRecords(bytes)) if (kind === RecordKind.settle) yield JSON.parse(body);
}

/** Length of a segment without the zeros at its end, which are unused space of a memory-mapped segment. */
function bytesWithin(bytes: Uint8Array): number {
	let end = bytes.length;
	while (end > 0 && bytes[end - 1] === 0) end -= 1;
	return end;
}

/** Settlement of a crashed request: charged for what its client had certainly received by its last progress record. */
export function crashedEvent(admitted: AdmittedEvent, progress: Progress | undefined, nowWallMs: number): SettledEvent {
	const charged: NanoUsd = minUsd(progress?.delivered ?? ZERO_USD, admitted.reserved);
	return {
		...admitted,
		charged,
		off: ZERO_USD,
		basis: "recovered",
		ending: "crashed",
		status: 500,
		...NO_USAGE,
		promptTokens: progress?.promptTokens ?? 0,
		completionTokens: progress?.completionTokens ?? 0,
		replica: null,
		first: null,
		ms: Math.max(0, nowWallMs - admitted.at),
	};
}
