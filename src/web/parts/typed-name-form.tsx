import { TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useState } from "react";
import type { Action } from "../resource.ts";
import { isTypedName } from "../typed-name.ts";
import { DialogEnd, Form } from "./form.tsx";

/** For what cannot be undone: nothing happens before the name of the thing is typed. */
export function TypedNameForm(props: {
	name: string;
	/** Asks for the name. */
	label: string;
	/** What the button says. */
	act: string;
	action: Action<[], void>;
	onCancel: () => void;
	/** What it means. */
	children: ReactNode;
}) {
	const { name, label, act, action } = props;
	const [typed, setTyped] = useState("");
	const isTyped = isTypedName(typed, name);
	return (
		<Form
			onSubmit={() => {
				if (isTyped) void action.run();
			}}
			error={action.error}
			end={<DialogEnd onCancel={props.onCancel} label={act} busy={action.busy} disabled={!isTyped} danger />}
		>
			<p>{props.children}</p>
			<TextInput
				label={label}
				autoComplete="off"
				data-autofocus
				value={typed}
				onChange={(event) => setTyped(event.currentTarget.value)}
			/>
		</Form>
	);
}
