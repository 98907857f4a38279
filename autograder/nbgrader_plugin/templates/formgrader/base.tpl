{#- nbgrader's frame of all pages, except that the sentence in a dialog, which may name a student, is text. -#}
{%- extends 'nbgrader/base.tpl' -%}

{%- block script -%}
<script>
const createModalOfHTML = createModal;
createModal = (id, title, body, footer) =>
  createModalOfHTML(id, title, typeof body === "string" ? document.createTextNode(body) : body, footer);
</script>
{%- endblock -%}
