import { Button, Group, Modal, type ModalProps, Stack, TextInput } from "@mantine/core";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { formatClock, formatCount, formatDuration } from "../format.ts";
import { useHeldPage } from "../held-page.ts";
import type { ApiError } from "../http.ts";
import type { Action } from "../resource.ts";
import { plural, rich, t } from "../texts.tsx";
import { isTypedName } from "../typed-name.ts";
import type { Fence } from "../views.ts";
import { Form } from "./form.tsx";
import { Notice } from "./problem.tsx";

/** Tells the dialog around a form whether the form's act runs. */
const DialogBusy = createContext<(busy: boolean) => void>(() => undefined);

type DialogProps = Omit<ModalProps, "opened"> & { opened?: boolean; held?: boolean };

/**
 * Above the page, with a title and a close button. While the act of its form runs, neither Escape nor a click outside
 * closes it: the act would be carried out all the same. While it is `held`, the page cannot be left either.
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
	/** What the button of the act says. */
	readonly act: ReactNode;
	/** In place of running the action at once. */
	readonly onSubmit?: () => void;
	readonly onCancel: () => void;
	readonly disabled?: boolean;
	readonly danger?: boolean;
	/** In place of the action's error; null shows none. */
	readonly error?: ApiError | null | undefined;
	/** Above the buttons. */
	readonly below?: ReactNode;
	readonly children: ReactNode;
}

/** The form of a dialog: fields, then Cancel and the act. While the act runs it cannot be cancelled. */
export function ActForm({ action, error = action.error ?? null, ...props }: ActFormProps) {
	const { busy } = action;
	const tell = useContext(DialogBusy);
	useEffect(() => {
		tell(busy);
		return () => tell(false);
	}, [tell, busy]);
	return (
		<Form onSubmit={props.onSubmit ?? (() => void action.run())} error={error ?? undefined}>
			{props.children}
			{props.below}
			<Group justify="flex-end" gap="xs">
				<Button variant="default" disabled={busy} onClick={props.onCancel}>
					{t("Cancel")}
				</Button>
				<Button
					type="submit"
					{...(props.danger ? { color: "red" } : {})}
					disabled={props.disabled ?? false}
					loading={busy}
				>
					{props.act}
				</Button>
			</Group>
		</Form>
	);
}

/** A dialog with one act. */
export function ActDialog(
	props: Omit<ActFormProps, "onCancel"> &
		Pick<DialogProps, "opened" | "held" | "closeOnClickOutside" | "zIndex"> & {
			title: string;
			onClose: () => void;
		},
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

/** The result of a dialog's act: nothing is left but to close it. */
export function DialogDone({ onClose, children }: { onClose: () => void; children: ReactNode }) {
	return (
		<Stack gap={14}>
			{children}
			<Group justify="flex-end">
				<Button onClick={onClose}>{t("Done")}</Button>
			</Group>
		</Stack>
	);
}

/** Shows its `children` first; once the change is recorded, since when it holds on every instance. */
export function FencedDialog(props: {
	title: string;
	fence: Fence | undefined;
	/** What the notice says of the change. */
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

/** Whether a change has reached every instance, and when. */
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
				{t("Recorded. The database went away or to another server meanwhile: do it again to be sure.")}
			</Notice>
		);
	return (
		<Notice kind="warn">
			{plural(
				count,
				{
					one: "Recorded. {count} instance has not confirmed it yet",
					other: "Recorded. {count} instances have not confirmed it yet",
				},
				{ count: formatCount(count) },
			)}
			{fence.effectiveByMs !== null &&
				rich("; none of them admits anything under the old state after {clock}", {
					clock: <span className="num">{formatClock(fence.effectiveByMs)}</span>,
				})}
			.
		</Notice>
	);
}

/** For what cannot be undone: nothing happens before the name of the thing is typed. */
export function TypedNameForm(
	props: Pick<ActFormProps, "act" | "onCancel" | "children"> & {
		action: Action<[], void>;
		name: string;
		/** Asks for the name. */
		label: string;
	},
) {
	const { name, label, children, ...form } = props;
	const [typed, setTyped] = useState("");
	const isTyped = isTypedName(typed, name);
	const run = () => {
		if (isTyped) void props.action.run();
	};
	return (
		<ActForm {...form} onSubmit={run} disabled={!isTyped} danger>
			<p>{children}</p>
			<TextInput
				label={label}
				autoComplete="off"
				data-autofocus
				value={typed}
				onChange={(event) => setTyped(event.currentTarget.value)}
			/>
		</ActForm>
	);
}
