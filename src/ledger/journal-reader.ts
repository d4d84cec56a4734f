import { minUsd, type NanoUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent, SettledEvent } from "./event.ts";
import type { JournalDisk } from "./journal-disk.ts";
import { RecordKind, readRecords } from "./journal-record.ts";
import { NO_COUNTS, type Progress } from "./outcome.ts";

export interface EndOfJournal {
	/** Events for requests that were open: charged for what they have certainly received. */
	readonly recovered: readonly SettledEvent[];
	/** Bytes skipped after the first damaged record of a segment, without the zeros at its end. */
	readonly damagedBytes: number;
}

/**
 * Reads the journal of an ended epoch, segment by segment: settlements in order, then open requests. An open request is
 * charged the lower amount of its last progress record, so customers pay for nothing that may not have arrived.
 */
export function* readJournal(disk: JournalDisk, nowWallMs: number): Generator<SettledEvent, EndOfJournal> {
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
				// A repeated admission was copied forward; its earlier progress still counts.
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

/** The settlements of a segment, up to the first torn or damaged record. */
export function* settlementsIn(bytes: Uint8Array): Generator<SettledEvent> {
	for (const { kind, body } of readRecords(bytes)) if (kind === RecordKind.settle) yield JSON.parse(body);
}

/** Length without the zeros at the end, which no record of a mapped segment has reached. */
function bytesWithin(bytes: Uint8Array): number {
	let end = bytes.length;
	while (end > 0 && bytes[end - 1] === 0) end -= 1;
	return end;
}

/** Charges what the request had certainly received, by its last progress record. */
export function crashedEvent(admitted: AdmittedEvent, progress: Progress | undefined, nowWallMs: number): SettledEvent {
	const charged: NanoUsd = minUsd(progress?.delivered ?? ZERO_USD, admitted.reserved);
	return {
		...admitted,
		charged,
		off: ZERO_USD,
		basis: "recovered",
		ending: "crashed",
		status: 500,
		...NO_COUNTS,
		promptTokens: progress?.promptTokens ?? 0,
		completionTokens: progress?.completionTokens ?? 0,
		replica: null,
		first: null,
		ms: Math.max(0, nowWallMs - admitted.at),
	};
}
