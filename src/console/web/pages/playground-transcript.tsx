import type { NanoUsd } from "../../../money/nano-usd.ts";
import { showUsdExact } from "../../../money/shown-usd.ts";
import { formatCount, formatDuration } from "../format.ts";
import { Empty, Notice } from "../parts/problem.tsx";
import { Link } from "../router.tsx";

export interface Turn {
	readonly id: number;
	readonly role: "user" | "assistant";
	readonly content: string;
	readonly thought?: string;
	readonly facts?: TurnFactsView;
	readonly error?: string;
}

interface TurnFactsView {
	readonly model: string;
	readonly requestId: string | null;
	readonly promptTokens: number | null;
	readonly completionTokens: number | null;
	readonly costNanoUsd: NanoUsd | null;
	readonly firstTokenMs: number | null;
	readonly totalMs: number;
	readonly stopped: boolean;
}

export function Transcript({ turns, busy }: { turns: readonly Turn[]; busy: boolean }) {
	if (turns.length === 0) {
		return (
			<div className="transcript">
				<Empty title="Ask something.">The answer streams in, with its tokens, speed and cost.</Empty>
			</div>
		);
	}
	return (
		<div className="transcript" role="log" aria-live="polite" aria-busy={busy} aria-label="Conversation">
			{turns.map((turn) => (
				<div key={turn.id} className={`message message-${turn.role}`}>
					<div className="message-who">{turn.role === "user" ? "You" : (turn.facts?.model ?? "Answer")}</div>
					{turn.thought && (
						<details>
							<summary className="small dim">Reasoning</summary>
							<div className="message-text dim">{turn.thought}</div>
						</details>
					)}
					<div className="message-text">
						{turn.content || (turn.facts ? <span className="dim">No text.</span> : <span className="dim">…</span>)}
					</div>
					{turn.error && <Notice kind="warn">{turn.error}</Notice>}
					{turn.facts && <TurnFacts facts={turn.facts} />}
				</div>
			))}
		</div>
	);
}

function TurnFacts({ facts }: { facts: TurnFactsView }) {
	const generatingMs = facts.totalMs - (facts.firstTokenMs ?? 0);
	const speed =
		facts.completionTokens !== null && facts.completionTokens > 1 && generatingMs > 0
			? `${formatCount(Math.round((facts.completionTokens / generatingMs) * 1000))} tokens/s`
			: undefined;
	const parts = [
		facts.stopped ? "stopped" : undefined,
		facts.promptTokens === null
			? undefined
			: `${formatCount(facts.promptTokens)} + ${formatCount(facts.completionTokens ?? 0)} tokens`,
		speed,
		facts.firstTokenMs === null ? undefined : `first token ${formatDuration(facts.firstTokenMs)}`,
		facts.costNanoUsd === null ? undefined : showUsdExact(facts.costNanoUsd),
	].filter((part) => part !== undefined);
	return (
		<div className="message-who num">
			{parts.join(" · ")}
			{facts.requestId && <Link to={`/requests/${facts.requestId}`}>request</Link>}
		</div>
	);
}
