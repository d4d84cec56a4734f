import { formatClock, formatCount, formatDuration } from "../format.ts";
import { plural, rich, t } from "../texts.tsx";
import type { Fence } from "../views.ts";
import { Notice } from "./problem.tsx";

/** Whether a change has reached every instance, and when. */
export function FenceNotice({ fence, done }: { fence: Fence; done: string }) {
	if (fence.effective) {
		return (
			<Notice kind="ok">
				{rich("{done} since {clock} ({elapsed}).", {
					done,
					clock: <span className="num">{formatClock(fence.atMs)}</span>,
					elapsed: formatDuration(fence.elapsedMs),
				})}
			</Notice>
		);
	}
	if (!fence.known)
		return (
			<Notice kind="warn">
				{t("Recorded. The database went away or to another server meanwhile: do it again to be sure.")}
			</Notice>
		);
	return (
		<Notice kind="warn">
			{plural(
				fence.pendingInstances,
				{
					one: "Recorded. {count} instance has not confirmed it yet",
					other: "Recorded. {count} instances have not confirmed it yet",
				},
				{ count: formatCount(fence.pendingInstances) },
			)}
			{fence.effectiveByMs !== null &&
				rich("; none of them admits anything under the old state after {clock}", {
					clock: <span className="num">{formatClock(fence.effectiveByMs)}</span>,
				})}
			.
		</Notice>
	);
}
