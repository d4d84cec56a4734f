/** The server takes the script as a text, to serve it apart from the bundle. */
declare const text: string;
export default text;
