import { Button, Group, Stack, Textarea } from "@mantine/core";
import { useState } from "react";
import { nanoUsd } from "../../../money/nano-usd.ts";
import type { ToolCall } from "../../chat-stream.ts";
import { formatCount } from "../../format.ts";
import { Form } from "../../parts/form.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Link } from "../../router.tsx";
import { showUsdExact } from "../../shown-money.ts";
import { rich, t } from "../../texts.tsx";
import { openCalls, type ToolTurn, type Turn } from "./conversation.ts";
import { Refused, Transcript } from "./transcript.tsx";
import type { Thread } from "./use-thread.ts";

/** One model's conversation: turns, cost, errors and open tool calls. */
export function ThreadView({ name, thread }: { name: string; thread: Thread }) {
	const calls = thread.busy ? [] : openCalls(thread.turns);
	const { refused } = thread;
	return (
		<Stack component="section" gap="sm" aria-label={name}>
			<Group justify="space-between" gap="xs">
				<strong>{name}</strong>
				<Totals turns={thread.turns} />
			</Group>
			<Transcript turns={thread.turns} busy={thread.busy} />
			{refused && (
				<Stack gap={14}>
					<Problem error={refused.error} />
					{refused.error.status === 402 && (
						<p className="small">
							{rich("<link>See the credit</link>, or lower the tokens at most.", {
								link: (inner) => <Link to="/credit">{inner}</Link>,
							})}
						</p>
					)}
					{refused.error.code === "unanswered" && (
						<p className="small">
							<Link to="/requests">{t("See the requests")}</Link>
						</p>
					)}
					<Refused turns={refused.turns} onAgain={() => thread.ask(refused.turns)} />
				</Stack>
			)}
			{calls.length > 0 && !refused && (
				<CallAnswers key={thread.turns.length} calls={calls} onAnswered={(turns) => thread.ask(turns)} />
			)}
		</Stack>
	);
}

/** Totals of all answers so far. */
function Totals({ turns }: { turns: readonly Turn[] }) {
	let tokens = 0;
	let cost = nanoUsd(0);
	for (const turn of turns) {
		if (turn.role !== "assistant") continue;
		tokens += (turn.facts?.promptTokens ?? 0) + (turn.facts?.completionTokens ?? 0);
		cost = nanoUsd(cost + (turn.facts?.costNanoUsd ?? 0));
	}
	if (tokens === 0) return null;
	return (
		<span className="small dim num">
			{t("{tokens} tokens · {cost} together", { tokens: formatCount(tokens), cost: showUsdExact(cost) })}
		</span>
	);
}

/** Lets the user answer the tool calls, in place of a program that would run the functions. */
function CallAnswers({
	calls,
	onAnswered,
}: {
	calls: readonly ToolCall[];
	onAnswered: (turns: readonly ToolTurn[]) => void;
}) {
	const [answers, setAnswers] = useState<readonly string[]>(() => calls.map(() => '{"ok": true}'));
	return (
		<Form
			onSubmit={() => {
				onAnswered(
					calls.map(({ id, name }, place) => ({ role: "tool", callId: id, name, content: answers[place] ?? "" })),
				);
			}}
			end={
				<Group justify="flex-end" gap="xs">
					<Button type="submit" size="xs">
						{t("Give the answers")}
					</Button>
				</Group>
			}
		>
			{calls.map((call, place) => (
				<Textarea
					key={call.id}
					label={t("What {name} answers", { name: call.name })}
					autosize
					minRows={1}
					maxRows={8}
					value={answers[place] ?? ""}
					onChange={(event) => setAnswers(answers.with(place, event.currentTarget.value))}
				/>
			))}
		</Form>
	);
}
