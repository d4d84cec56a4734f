import { Group, Modal, type ModalProps, Stack } from "@mantine/core";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { api, type Fence } from "../api.ts";
import { useHeldPage } from "../held-page.ts";
import { type Action, onPasswordAsked, useAction } from "../resource.ts";
import { formatClock, formatCount, formatDuration, plural, rich, t } from "../texts.tsx";
import { PasswordField, TextField } from "./fields.tsx";
import { ActButton, Form, otherError } from "./form.tsx";
import { ErrorMessage, Notice } from "./page.tsx";

/** Lets a form inform the dialog around it that a submission is in progress. */
const DialogBusy = createContext<(busy: boolean) => void>(() => undefined);

type DialogProps = Omit<ModalProps, "opened"> & { opened?: boolean; held?: boolean };

/**
 * Modal dialog. Escape and outside clicks do not close it during a submission, which cannot be cancelled. While `held`,
 * the page cannot be left either.
 */
export function Dialog({ held = false, onClose, ...rest }: DialogProps) {
	const [busy, setBusy] = useState(false);
	useHeldPage(held);
	return (
		<DialogBusy value={setBusy}>
			<Modal
				opened
				closeButtonProps={{ "aria-label": t("Close") }}
				{...rest}
				onClose={held || busy ? () => undefined : onClose}
			/>
		</DialogBusy>
	);
}

interface ActFormProps {
	readonly action: Pick<Action<[], unknown>, "run" | "busy" | "error">;
	readonly act: ReactNode;
	readonly onSubmit?: () => void;
	readonly onCancel: () => void;
	readonly disabled?: boolean;
	readonly danger?: boolean;
	readonly fields?: readonly string[];
	readonly below?: ReactNode;
	readonly children: ReactNode;
}

/** Form inside a dialog, with a Cancel and a submit button. A submission in progress cannot be cancelled. */
export function ActForm({ action, fields = [], danger = false, disabled = false, ...props }: ActFormProps) {
	const { busy } = action;
	const tell = useContext(DialogBusy);
	useEffect(() => {
		tell(busy);
		return () => tell(false);
	}, [tell, busy]);
	return (
		<Form onSubmit={props.onSubmit ?? (() => void action.run())} error={otherError(action, ...fields)}>
			{props.children}
			{props.below}
			<Group justify="flex-end" gap="xs">
				<ActButton size="sm" label={t("Cancel")} disabled={busy} onClick={props.onCancel} />
				<ActButton submit size="sm" look={danger ? "final" : "main"} label={props.act} {...{ action, disabled }} />
			</Group>
		</Form>
	);
}

export function ActDialog(
	props: Omit<ActFormProps, "onCancel"> &
		Pick<DialogProps, "opened" | "held" | "closeOnClickOutside" | "zIndex"> & { title: string; onClose: () => void },
) {
	const { title, onClose, opened, held, closeOnClickOutside, zIndex, ...form } = props;
	const given = Object.entries({ opened, held, closeOnClickOutside, zIndex }).filter(
		([, value]) => value !== undefined,
	);
	return (
		<Dialog title={title} onClose={onClose} {...Object.fromEntries(given)}>
			<ActForm {...form} onCancel={onClose} />
		</Dialog>
	);
}

export function DialogDone({ onClose, children }: { onClose: () => void; children: ReactNode }) {
	return (
		<Stack gap={14}>
			{children}
			<Group justify="flex-end">
				<ActButton size="sm" look="main" label={t("Done")} onClick={onClose} />
			</Group>
		</Stack>
	);
}

/** Dialog that asks whether to keep or revoke keys, before an action that leaves them without their user. */
export function KeysDialog(props: {
	title: string;
	keep: string;
	revoke: string;
	action: Pick<Action<[choice: "keep" | "revoke"], unknown>, "run" | "busy" | "error">;
	onClose: () => void;
	children: ReactNode;
}) {
	const { title, action, onClose } = props;
	const { run, busy, error } = action;
	return (
		<Dialog title={title} onClose={onClose}>
			<Stack gap={14}>
				{props.children}
				{error && <ErrorMessage error={error} />}
				<Group justify="flex-end" gap="xs">
					<ActButton size="sm" label={t("Cancel")} onClick={onClose} />
					<ActButton size="sm" label={props.keep} busy={busy} onClick={() => void run("keep")} />
					<ActButton size="sm" look="final" label={props.revoke} busy={busy} onClick={() => void run("revoke")} />
				</Group>
			</Stack>
		</Dialog>
	);
}

/** Dialog that shows `children`, and whether every instance has applied the change. */
export function FencedDialog(props: {
	title: string;
	fence: Fence | undefined;
	done: string;
	below?: ReactNode;
	onClose: () => void;
	children: ReactNode;
}) {
	const { title, fence, done, below, onClose, children } = props;
	return (
		<Dialog title={title} onClose={onClose}>
			{fence === undefined ? (
				children
			) : (
				<DialogDone onClose={onClose}>
					<FenceNotice fence={fence} done={done} />
					{below}
				</DialogDone>
			)}
		</Dialog>
	);
}

/** Says whether every instance has applied a change; if not, when it will be effective at the latest. */
export function FenceNotice({ fence, done }: { fence: Fence; done: string }) {
	const { effective, known, pendingInstances: count } = fence;
	if (effective)
		return (
			<Notice kind="ok">
				{rich("{done} since {clock} ({elapsed}).", {
					done,
					clock: <span className="num">{formatClock(fence.atMs)}</span>,
					elapsed: formatDuration(fence.elapsedMs),
				})}
			</Notice>
		);
	if (!known)
		return (
			<Notice kind="warn">
				{t("Saved, but the database connection was lost before it was confirmed. Repeat the action to be sure.")}
			</Notice>
		);
	return (
		<Notice kind="warn">
			{plural(
				count,
				{
					one: "Saved. {count} instance has not confirmed it yet",
					other: "Saved. {count} instances have not confirmed it yet",
				},
				{ count: formatCount(count) },
			)}
			{fence.effectiveByMs !== null &&
				rich("; the change applies on all of them by {clock}", {
					clock: <span className="num">{formatClock(fence.effectiveByMs)}</span>,
				})}
			.
		</Notice>
	);
}

/**
 * Dialog for irreversible actions: the user must type the object's name. Then it says when the action is effective on
 * every instance.
 */
export function EndDialog<Result extends { readonly fence: Fence }>(props: {
	title: string;
	name: string;
	label: string;
	act: string;
	run: () => Promise<Result>;
	done: string;
	below?: (result: Result) => ReactNode;
	onClose: () => void;
	children: ReactNode;
}) {
	const { title, name, done, onClose } = props;
	const [typed, setTyped] = useState("");
	const [result, setResult] = useState<Result>();
	const end = useAction(async () => setResult(await props.run()));
	const isTyped = isTypedName(typed, name);
	return (
		<FencedDialog {...{ title, done, onClose }} fence={result?.fence} below={result && props.below?.(result)}>
			<ActForm
				action={end}
				act={props.act}
				onSubmit={() => isTyped && void end.run()}
				disabled={!isTyped}
				danger
				onCancel={onClose}
			>
				<p>{props.children}</p>
				<TextField label={props.label} autoComplete="off" data-autofocus value={typed} onChange={setTyped} />
			</ActForm>
		</FencedDialog>
	);
}

/** Compares a typed name with the shown one. Repeated spaces count as one; invisible characters are ignored. */
export const isTypedName = (typed: string, name: string): boolean => asTyped(typed) === asTyped(name);

const asTyped = (text: string): string =>
	text
		.normalize("NFC")
		.replace(/\p{Cf}/gu, "")
		.replace(/\s+/g, " ")
		.trim();

/** Dialog that opens above all pages when the server requires the password before an action. */
export function PasswordDialog() {
	const [answer, setAnswer] = useState<(given: boolean) => void>();
	const [password, setPassword] = useState("");
	useEffect(() => {
		onPasswordAsked(() => new Promise((resolve) => setAnswer(() => resolve)));
		return () => onPasswordAsked(undefined);
	}, []);
	function close(given: boolean) {
		answer?.(given);
		setAnswer(undefined);
		setPassword("");
		give.clear();
	}
	const give = useAction(async () => {
		await api.reauthenticate(password);
		return true;
	});
	return (
		<ActDialog
			opened={answer !== undefined}
			onClose={() => close(false)}
			title={t("Confirm your password")}
			zIndex={400}
			action={give}
			act={t("Continue")}
			onSubmit={async () => {
				if ((await give.run()) === true) close(true);
			}}
			below={<p className="small dim">{t("If you signed in without a password, sign out and in again instead.")}</p>}
		>
			<p>{t("This action requires a recent sign-in. Enter your password to continue.")}</p>
			<PasswordField label={t("Password")} name="password" value={password} onChange={setPassword} />
		</ActDialog>
	);
}
