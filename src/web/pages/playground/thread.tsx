import { Box, Button, Group, Paper, Stack, Textarea } from "@mantine/core";
import { memo, useEffect, useState } from "react";
import { nanoUsd } from "../../../money/nano-usd.ts";
import type { ToolCall } from "../../chat-stream.ts";
import { lazy } from "../../lazy.tsx";
import { ActButton, Form } from "../../parts/form.tsx";
import { Empty, ErrorMessage, Notice } from "../../parts/page.tsx";
import { Link, linkRenderer } from "../../router.tsx";
import { formatCount, formatDuration, rich, showUsdExact, t } from "../../texts.tsx";
import { type AnswerStats, type AnswerTurn, type ToolTurn, type Turn, unansweredCalls } from "./conversation.ts";
import type { Thread } from "./use-thread.ts";

const Markdown = lazy<{ text: string }>(() => import("./markdown.tsx"), "…");

export function ThreadView({ name, thread }: { name: string; thread: Thread }) {
	const calls = thread.busy ? [] : unansweredCalls(thread.turns);
	const { refused } = thread;
	useEffect(() => Markdown.preload(), []);
	return (
		<Stack component="section" gap="sm" aria-label={name}>
			<Group justify="space-between" gap="xs">
				<strong>{name}</strong>
				<Totals turns={thread.turns} />
			</Group>
			<Transcript turns={thread.turns} busy={thread.busy} />
			{refused && (
				<Stack gap={14}>
					<ErrorMessage error={refused.error} />
					{refused.error.status === 402 && (
						<p className="small">
							{rich("<link>Top up</link>, or lower the maximum tokens.", { link: linkRenderer("/credit") })}
						</p>
					)}
					{refused.error.code === "unanswered" && (
						<p className="small">
							<Link to="/requests">{t("View requests")}</Link>
						</p>
					)}
					<Box pl="xs">
						<Turns turns={refused.turns} />
					</Box>
					<ActButton label={t("Send again")} onClick={() => thread.ask(refused.turns)} />
				</Stack>
			)}
			{calls.length > 0 && !refused && (
				<CallAnswers key={thread.turns.length} calls={calls} onAnswered={(turns) => thread.ask(turns)} />
			)}
		</Stack>
	);
}

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
			{t("{tokens} tokens · {cost} total", { tokens: formatCount(tokens), cost: showUsdExact(cost) })}
		</span>
	);
}

/** Form in which the user enters the results of tool calls, as a program would after running the functions. */
function CallAnswers(props: { calls: readonly ToolCall[]; onAnswered: (turns: readonly ToolTurn[]) => void }) {
	const { calls, onAnswered } = props;
	const [answers, setAnswers] = useState<readonly string[]>(() => calls.map(() => '{"ok": true}'));
	return (
		<Form
			onSubmit={() =>
				onAnswered(
					calls.map(({ id, name }, place) => ({ role: "tool", callId: id, name, content: answers[place] ?? "" })),
				)
			}
			end={
				<Group justify="flex-end" gap="xs">
					<Button type="submit">{t("Send the results")}</Button>
				</Group>
			}
		>
			{calls.map((call, place) => (
				<Textarea
					key={call.id}
					label={t("Result of {name}", { name: call.name })}
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

function Transcript({ turns, busy }: { turns: readonly Turn[]; busy: boolean }) {
	if (turns.length === 0) {
		return <Empty title={t("Start a conversation.")}>{t("Each response shows its tokens, speed and cost.")}</Empty>;
	}
	return (
		<Stack gap="sm" mih={240} role="log" aria-live="polite" aria-busy={busy} aria-label={t("Conversation")}>
			<Turns turns={turns} />
		</Stack>
	);
}

function Turns({ turns }: { turns: readonly Turn[] }) {
	// biome-ignore lint/suspicious/noArrayIndexKey: turns are only added at the end
	return turns.map((turn, place) => <TurnView key={place} turn={turn} />);
}

/** Memoized: while an answer streams, the Markdown of earlier turns is not parsed again. */
const TurnView = memo(function TurnView({ turn }: { turn: Turn }) {
	if (turn.role === "assistant") return <Answer turn={turn} />;
	return (
		<Paper className="message" p="xs" bg="var(--soft)">
			<div className="small dim">{turn.role === "user" ? t("You") : t("Result of {name}", { name: turn.name })}</div>
			{turn.content}
			{turn.role === "user" && turn.pictures.length > 0 && (
				<Group gap="xs">
					{turn.pictures.map(({ name, url }) => (
						<img key={url.slice(-64)} src={url} alt={name} />
					))}
				</Group>
			)}
		</Paper>
	);
});

function Answer({ turn }: { turn: AnswerTurn }) {
	const isEmpty = turn.content === "" && turn.toolCalls.length === 0;
	return (
		<div>
			<div className="small dim">{turn.facts?.model || t("Response")}</div>
			{turn.thought && (
				<details>
					<summary className="small dim">{t("Reasoning")}</summary>
					<div className="message dim">{turn.thought}</div>
				</details>
			)}
			{isEmpty && <div className="dim">{turn.facts ? t("No text.") : "…"}</div>}
			{turn.content && <Markdown text={turn.content} />}
			{turn.toolCalls.map((call) => (
				<div key={call.id} className="message">
					<span className="dim">{t("calls")}</span> <code>{`${call.name}(${call.input})`}</code>
				</div>
			))}
			{turn.error && <Notice kind="warn">{turn.error}</Notice>}
			{turn.facts && <Facts facts={turn.facts} />}
		</div>
	);
}

function Facts({ facts }: { facts: AnswerStats }) {
	const speed = tokensPerSecond(facts);
	const parts = [
		facts.stopped ? t("stopped") : undefined,
		facts.promptTokens === null
			? undefined
			: t("{prompt} + {completion} tokens", {
					prompt: formatCount(facts.promptTokens),
					completion: formatCount(facts.completionTokens ?? 0),
				}),
		speed === undefined ? undefined : t("{count} tokens/s", { count: formatCount(speed) }),
		facts.firstTokenMs === null ? undefined : t("{time} to first token", { time: formatDuration(facts.firstTokenMs) }),
		facts.costNanoUsd === null ? undefined : showUsdExact(facts.costNanoUsd),
	].filter((part) => part !== undefined);
	return (
		<Group gap="xs" className="small dim">
			{parts.map((part) => (
				<span key={part}>{part}</span>
			))}
			{facts.requestId && <Link to={`/requests/${facts.requestId}`}>{t("request")}</Link>}
		</Group>
	);
}

/** Tokens per second after the first token; undefined if the answer is too short to measure. */
function tokensPerSecond({ totalMs, firstTokenMs, completionTokens }: AnswerStats): number | undefined {
	const generatingMs = totalMs - (firstTokenMs ?? 0);
	if (completionTokens === null || completionTokens <= 1 || generatingMs <= 0) return undefined;
	return Math.round((completionTokens / generatingMs) * 1000);
}
