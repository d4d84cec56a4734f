import { formatClock, formatCount, formatDuration } from "../format.ts";
import type { Fence } from "../views.ts";
import { Notice } from "./problem.tsx";

/** Whether a change has reached every instance, and when. */
export function FenceNotice({ fence, done }: { fence: Fence; done: string }) {
	if (fence.effective) {
		return (
			<Notice kind="ok">
				{done} since <span className="num">{formatClock(fence.atMs)}</span> ({formatDuration(fence.elapsedMs)}).
			</Notice>
		);
	}
	if (!fence.known)
		return (
			<Notice kind="warn">Recorded. The database went away meanwhile: ask again when it applies everywhere.</Notice>
		);
	return (
		<Notice kind="warn">
			Recorded. {formatCount(fence.pendingInstances)} {fence.pendingInstances === 1 ? "instance has" : "instances have"}{" "}
			not confirmed it yet
			{fence.effectiveByMs !== null && (
				<>
					; none of them admits anything under the old state after{" "}
					<span className="num">{formatClock(fence.effectiveByMs)}</span>
				</>
			)}
			.
		</Notice>
	);
}
