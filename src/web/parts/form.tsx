import { Anchor, Button, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiError } from "../http.ts";
import { Icon } from "./icons.tsx";
import { Problem } from "./problem.tsx";

/** Sent by its button or by Enter, and never by the browser itself. The error is above the end. */
export function Form(props: {
	onSubmit: () => void;
	error?: ApiError | undefined;
	/** The buttons. */
	end?: ReactNode;
	children: ReactNode;
}) {
	return (
		<form
			onSubmit={(event) => {
				event.preventDefault();
				props.onSubmit();
			}}
		>
			<Stack gap="sm">
				{props.children}
				{props.error && <Problem error={props.error} />}
				{props.end}
			</Stack>
		</form>
	);
}

/** The end of a form on a page; other acts on the same thing are its `children`. */
export function PanelEnd(props: {
	label: ReactNode;
	busy: boolean;
	disabled?: boolean;
	/** It is what the panel is for. */
	main?: boolean;
	children?: ReactNode;
}) {
	return (
		<Group justify="flex-end" gap="xs">
			{props.children}
			<Button
				type="submit"
				variant={props.main ? "filled" : "default"}
				loading={props.busy}
				disabled={props.disabled ?? false}
			>
				{props.label}
			</Button>
		</Group>
	);
}

/** A button that looks like a link, as in rows of tables. */
export function LinkButton({
	onClick,
	children,
	...rest
}: {
	onClick: () => void;
	children: ReactNode;
	id?: string;
	"aria-expanded"?: boolean;
}) {
	return (
		<Anchor component="button" type="button" inherit onClick={onClick} {...rest}>
			{children}
		</Anchor>
	);
}

/** Saves what the page shows, and what it leaves out for length, as a file. */
export function CsvButton({ href }: { href: string }) {
	return (
		<Button component="a" href={href} download size="xs" variant="default" leftSection={<Icon name="download" />}>
			CSV
		</Button>
	);
}
