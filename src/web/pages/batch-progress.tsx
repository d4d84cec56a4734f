import { Box, Progress } from "@mantine/core";
import { useEffect } from "react";
import { formatAgo, formatCount } from "../format.ts";
import { State } from "../parts/page.tsx";
import { useNow } from "../resource.ts";
import { t } from "../texts.tsx";
import type { BatchView } from "../views.ts";

const TONES: Readonly<Record<BatchView["state"], "ok" | "warn" | "bad" | "off">> = {
	validating: "warn",
	in_progress: "ok",
	finalizing: "ok",
	completed: "ok",
	failed: "bad",
	expired: "off",
	cancelling: "warn",
	cancelled: "off",
};
const LOOK_MS = 2_000;

export const isOver = (batch: BatchView): boolean => batch.endedAtMs !== null;

export function BatchState({ item }: { item: BatchView }) {
	if (item.paused !== null && !isOver(item)) return <State value="pending" label={t("Paused")} />;
	return <State value={item.state} tone={TONES[item.state]} />;
}

/** Share of the finished lines; failed ones have their own colour. */
export function BatchProgress({ item }: { item: BatchView }) {
	const { total, completed, failed } = item;
	if (total === 0) return <span className="dim">–</span>;
	const percent = Math.floor(((completed + failed) / total) * 100);
	return (
		<Box miw={90}>
			<Progress.Root
				role="progressbar"
				aria-label={t("Lines that are done")}
				aria-valuemin={0}
				aria-valuemax={100}
				aria-valuenow={percent}
			>
				<Progress.Section withAria={false} value={(completed / total) * 100} />
				<Progress.Section withAria={false} value={(failed / total) * 100} color="yellow" striped />
			</Progress.Root>
			<span className="small num">
				{t("{done} of {total}", { done: formatCount(completed + failed), total: formatCount(total) })}
				{failed > 0 && t(", {count} failed", { count: formatCount(failed) })}
			</span>
		</Box>
	);
}

/** Estimates the end from the mean pace so far. */
export function ExpectedEnd({ item }: { item: BatchView }) {
	const now = useNow(LOOK_MS);
	const done = item.completed + item.failed;
	if (isOver(item) || item.paused !== null || item.inProgressAtMs === null || done === 0 || done >= item.total)
		return <span className="dim">–</span>;
	const leftMs = ((now - item.inProgressAtMs) / done) * (item.total - done);
	return <span className="num">{formatAgo(now + leftMs, now)}</span>;
}

/** Polls while `goesOn` is true and the page is visible. */
export function useProgress(goesOn: boolean, reload: () => Promise<void>): void {
	useEffect(() => {
		if (!goesOn) return;
		const timer = setInterval(() => {
			if (document.visibilityState === "visible") void reload();
		}, LOOK_MS);
		return () => clearInterval(timer);
	}, [goesOn, reload]);
}
